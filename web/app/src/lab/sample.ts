// Files and edits to measure with. The same seed gives the same bytes in every browser.

export const EDIT_KINDS = ['append', 'insert', 'cut'] as const;

export interface Edit {
  kind: (typeof EDIT_KINDS)[number];
  /** How many bytes come in or go, in all. */
  size: number;
  /** In how many places of the file; an append has one. */
  places: number;
  seed: number;
}

/** The next random word of 32 bits, and the next state. */
function random(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let word = state;
    word = Math.imul(word ^ (word >>> 16), 0x21f0aaad);
    word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
    return (word ^ (word >>> 15)) >>> 0;
  };
}

/** Random bytes. */
export function bytesOf(seed: number, length: number): Uint8Array<ArrayBuffer> {
  const next = random(seed);
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let index = 0; index < words.length; index++) words[index] = next();
  return new Uint8Array(words.buffer, 0, length);
}

/** A stretch of the old file, from one place to another, or new bytes. */
type Part = [from: number, to: number] | Uint8Array<ArrayBuffer>;

/** Returns of what the edited file consists: places are drawn, and get about the same share each. Cuts at most what there is. */
function partsOf(length: number, edit: Edit): Part[] {
  const isCut = edit.kind === 'cut';
  const size = isCut ? Math.min(edit.size, length) : edit.size;
  const places = edit.kind === 'append' ? 1 : Math.max(1, Math.min(edit.places, size));
  // Places are drawn in what stays, so that cuts do not meet.
  const kept = isCut ? length - size : length;
  const next = random(~edit.seed);
  const drawn = Array.from({ length: places }, () =>
    edit.kind === 'append' ? kept : Math.floor((next() / 2 ** 32) * (kept + 1)),
  ).toSorted((one, other) => one - other);
  const put = bytesOf(edit.seed + 1, isCut ? 0 : size);
  const parts: Part[] = [];
  let [from, done] = [0, 0];
  drawn.forEach((place, index) => {
    const share = Math.floor((size * (index + 1)) / places) - done;
    // Where the place is in the old file: behind what was cut before it.
    const at = place + (isCut ? done : 0);
    parts.push([from, at]);
    if (!isCut) parts.push(put.subarray(done, done + share));
    from = at + (isCut ? share : 0);
    done += share;
  });
  parts.push([from, length]);
  return parts;
}

/** Returns the edited file. */
export function edited(old: Uint8Array, edit: Edit): Uint8Array<ArrayBuffer> {
  const parts = partsOf(old.length, edit).map((part) =>
    part instanceof Uint8Array ? part : old.subarray(...part),
  );
  const made = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let to = 0;
  for (const part of parts) {
    made.set(part, to);
    to += part.length;
  }
  return made;
}

/** Does the same with a file that stays on the disk: what is not edited is never read. */
export function spliced(old: Blob, edit: Edit): Blob {
  const parts = partsOf(old.size, edit);
  return new Blob(parts.map((part) => (part instanceof Uint8Array ? part : old.slice(...part))));
}
