// Two texts line by line: what went, what came, and where. By Myers' search for the fewest changes (the `diff` package), given up
// where two texts have little in common. It is work for a worker: some hundred changes take longer than a page may stand still.

import { diffArrays, diffWordsWithSpace } from 'diff';

/** A line, or so many that are the same. */
export type Row =
  | { kind: 'same'; before: number; after: number; text: string }
  | { kind: 'removed'; before: number; parts: Part[] }
  | { kind: 'added'; after: number; parts: Part[] }
  | { kind: 'folded'; rows: Row[] };

/** A part of a line that was changed, and whether it is what differs. */
export interface Part {
  text: string;
  isMarked: boolean;
}

/** So many lines that are the same stand around what differs. */
const CONTEXT = 3;
/** Longer searches are given up. */
const PATIENCE_MS = 3_000;
/** In longer lines nobody looks for what differs in them. */
const MARKED_LENGTH_MAX = 1_000;

/** The lines of two texts. Where both end their lines as Windows does, that is no part of the lines; where one does, it shows. */
function linesOf(texts: readonly [string, string]): [string[], string[]] {
  const isWindows = (text: string) => text.includes('\r\n') && !/(^|[^\r])\n/.test(text);
  const both = texts.every(isWindows);
  const split = (text: string) =>
    text === ''
      ? []
      : (both ? text.replaceAll('\r\n', '\n') : text.replaceAll('\r', '␍')).split('\n');
  return [split(texts[0]), split(texts[1])];
}

/** Compares two texts; nothing where they differ too much for that to be told in time. */
export function compare(before: string, after: string, patienceMs = PATIENCE_MS): Row[] | null {
  const [old, now] = linesOf([before, after]);
  const changes = diffArrays(old, now, { timeout: patienceMs });
  if (!changes) return null;
  const rows: Row[] = [];
  let [oldAt, newAt] = [1, 1];
  changes.forEach(({ added, removed, value }, index) => {
    // What went stands before what came in its place, line for line where they are as many.
    const other = removed ? changes[index + 1] : changes[index - 1];
    const isPair = other?.[removed ? 'added' : 'removed'] && other.value.length === value.length;
    value.forEach((text, line) => {
      if (!added && !removed) {
        rows.push({ kind: 'same', before: oldAt++, after: newAt++, text });
        return;
      }
      const counterpart = isPair ? other?.value[line] : undefined;
      const parts = partsOf(text, counterpart, removed);
      if (removed) rows.push({ kind: 'removed', before: oldAt++, parts });
      else rows.push({ kind: 'added', after: newAt++, parts });
    });
  });
  return folded(rows);
}

/** A line in parts, those that its counterpart has not marked; all of it where it has none. */
function partsOf(text: string, counterpart: string | undefined, isOld: boolean): Part[] {
  if (counterpart === undefined || text.length + counterpart.length > MARKED_LENGTH_MAX) {
    return [{ text, isMarked: false }];
  }
  const [old, now] = isOld ? [text, counterpart] : [counterpart, text];
  const words = diffWordsWithSpace(old, now)
    .filter(({ added, removed }) => (isOld ? !added : !removed))
    .map(({ value, added, removed }) => ({ text: value, isMarked: added || removed }));
  // Where nothing is left of a line, no part of it differs more than the others.
  const hasMore = words.some((part) => !part.isMarked && part.text.trim() !== '');
  return hasMore ? words : [{ text, isMarked: false }];
}

/** Folds what is the same and not near to what differs. */
function folded(rows: readonly Row[]): Row[] {
  const isNear = rows.map(() => false);
  rows.forEach(({ kind }, at) => {
    if (kind === 'same') return;
    isNear.fill(true, Math.max(0, at - CONTEXT), at + CONTEXT + 1);
  });
  const shown: Row[] = [];
  let run: Row[] = [];
  const end = () => {
    // Nothing is won by a button in the place of one line.
    shown.push(...(run.length > 1 ? [{ kind: 'folded' as const, rows: run }] : run));
    run = [];
  };
  rows.forEach((row, at) => {
    if (!isNear[at]) run.push(row);
    else {
      end();
      shown.push(row);
    }
  });
  end();
  return shown;
}
