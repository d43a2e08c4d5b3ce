// Names of files that have come and are not in their place yet.

import { endingAt } from '../files/names.ts';

const PART = 'part-';

/** A longer ending is none, and a name with it may be too long. */
const ENDING_MAX = 16;

/**
 * A name for a part. It has the ending of its place: browsers look for harm in what gets another one, which takes long, and after that they
 * put it over whatever has come there meanwhile.
 */
export function newPart(name: string): string {
  const ending = name.slice(endingAt(name));
  const id = crypto.getRandomValues(new BigUint64Array(1))[0]?.toString(36);
  return `${PART}${id}${ending.length > ENDING_MAX ? '' : ending}`;
}

export function isPart(name: string): boolean {
  return name.startsWith(PART);
}
