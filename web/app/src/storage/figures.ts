// Figures out of what the server tells. Pure.

import type { UsageContent } from '@syncline/api';

const DAY = 86_400;

/** How many days are shown. */
export const DAYS_SHOWN = 30;

/** How many lines an axis has at most, the one at zero apart. */
const STEPS_MAX = 4;

export interface Day {
  /** When it began, in seconds since 1970. */
  day: number;
  bytes: number;
}

/** The last days one by one, those on which nothing came among them. */
export function lastDays(days: readonly Day[], nowMs: number): Day[] {
  const today = Math.floor(nowMs / 1000 / DAY) * DAY;
  // The clock of a device, or of this browser, may be a little wrong.
  const last = Math.max(today, days.at(-1)?.day ?? 0);
  const known = new Map(days.map(({ day, bytes }) => [day, bytes]));
  return Array.from({ length: DAYS_SHOWN }, (_, at) => {
    const day = last - (DAYS_SHOWN - 1 - at) * DAY;
    return { day, bytes: known.get(day) ?? 0 };
  });
}

/** Where an axis of sizes has lines: from zero to the largest or above it, at doubled bytes, which are whole numbers of their units. */
export function linesOf(largest: number): number[] {
  let step = 1;
  while (step * STEPS_MAX < largest) step *= 2;
  const count = Math.max(1, Math.ceil(largest / step));
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}

/** Which of so many days have their names below them, where there is room for so many names: the last one always. */
export function namedDays(count: number, namesMax: number): number[] {
  const every = Math.max(1, Math.ceil(count / Math.max(1, namesMax)));
  const named = Array.from({ length: count }, (_, at) => at);
  return named.filter((at) => (count - 1 - at) % every === 0);
}

export interface Sum {
  files: number;
  bytes: number;
}

/** All files that are there. */
export function sumOf({ kinds }: UsageContent): Sum {
  const add = (sum: Sum, { files, bytes }: Sum) => ({
    files: sum.files + files,
    bytes: sum.bytes + bytes,
  });
  return kinds.reduce<Sum>(add, { files: 0, bytes: 0 });
}

/** Which part of what people have is not stored; less than nothing where more is. */
export function savedOf(content: UsageContent): number | null {
  const logical = sumOf(content).bytes + content.deleted.bytes;
  return logical === 0 ? null : 1 - content.packs.stored_bytes / logical;
}

/** How long a bar is, as a part of the longest; a little where there is anything. */
export function barOf(value: number, longest: number): number {
  return value === 0 || longest === 0 ? 0 : Math.max(0.005, value / longest);
}
