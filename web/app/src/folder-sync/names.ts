// Names: of conflicts, and those that are not synced.

import { endingAt } from '../files/names.ts';

export const NAME_LENGTH_MAX = 255;

/** Where the folder keeps what was removed from it, and what is on its way into it. */
export const TRASH = '.syncline-trash';

/** Where a device keeps its own files. */
export const SERVICE = '.syncline';

const encoder = new TextEncoder();
const lengthOf = (text: string) => encoder.encode(text).length;

/** Cuts a text at a character, so that it has at most so many bytes. */
function cut(text: string, length: number): string {
  let end = '';
  let used = 0;
  for (const sign of text) {
    used += lengthOf(sign);
    if (used > length) break;
    end += sign;
  }
  return end;
}

/** Cuts off a label of a conflict at the end of a stem. */
function withoutLabel(stem: string): string {
  if (!stem.endsWith(')')) return stem;
  const start = stem.lastIndexOf('(conflict ');
  return start > 1 && stem[start - 1] === ' ' ? stem.slice(0, start - 1) : stem;
}

/**
 * The name under which a copy is kept, as the programs make it (`Name::conflict` in `crates/model/src/path.rs`): `report.odt` with the
 * label `conflict laptop` becomes `report (conflict laptop).odt`. Labels never nest; `attempt` 1 and higher number the result.
 */
export function conflictName(name: string, label: string, attempt: number): string {
  const at = endingAt(name);
  const suffix = ` (${label}${attempt === 0 ? '' : ` ${attempt + 1}`})`;
  let [stem, ending] = [withoutLabel(name.slice(0, at)), name.slice(at)];
  if (NAME_LENGTH_MAX - lengthOf(suffix) - lengthOf(ending) <= 0) [stem, ending] = [name, ''];
  const room = NAME_LENGTH_MAX - lengthOf(suffix) - lengthOf(ending);
  return cut(stem, room) + suffix + ending;
}

/** The name that a copy with this label was made from; nothing for what is no such copy. */
export function originalName(name: string, label: string): string | null {
  const at = endingAt(name);
  const stem = name.slice(0, at);
  const start = stem.lastIndexOf(` (${label}`);
  const rest = start > 0 ? stem.slice(start + 2 + label.length) : '';
  return /^( [2-9]| [1-9]\d+)?\)$/.test(rest) ? stem.slice(0, start) + name.slice(at) : null;
}

/** The label of the copies that this browser keeps. A name has no slash, and room for more than its label. */
export function labelOf(device: string): string {
  return `conflict ${cut(device.replace(/[/\\:*?"<>|\p{Cc}]/gu, '_'), 64)}`;
}

/** Whether something is passed over without a word: what devices, browsers and this module keep in the folder for themselves. */
export function isOwn(name: string): boolean {
  return (
    name === TRASH ||
    name === SERVICE ||
    name.startsWith('.syncline-parked-') ||
    name.endsWith('.crswap')
  );
}

/** Whether the server takes a name. */
export function isName(name: string): boolean {
  return name !== '' && lengthOf(name) <= NAME_LENGTH_MAX && !/\p{Surrogate}/u.test(name);
}

/** Whether a name is that of a copy. */
export function isCopy(name: string): boolean {
  return name.includes(' (conflict ');
}
