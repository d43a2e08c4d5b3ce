// What happened, day by day.

import type { Activity } from '@syncline/api';

export interface Day {
  /** The day as it is counted here: year, month and day. */
  key: string;
  /** A moment of it, in seconds. */
  time: number;
  entries: Activity[];
}

function keyOf(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${date.getMonth() + 1}-${date.getDate()}`;
}

/** Puts together what follows each other on one day. Clocks of devices differ, so a day may come twice. */
export function byDay(list: readonly Activity[]): Day[] {
  const days: Day[] = [];
  for (const entry of list) {
    const last = days.at(-1);
    if (last?.key === keyOf(entry.time)) last.entries.push(entry);
    else days.push({ key: keyOf(entry.time), time: entry.time, entries: [entry] });
  }
  return days;
}

/** Names a day as people do. */
export function nameOfDay(
  { key, time }: Pick<Day, 'key' | 'time'>,
  nowMs: number,
  locale: string,
  words: { today: string; yesterday: string },
): string {
  if (key === keyOf(nowMs / 1000)) return words.today;
  const yesterday = new Date(nowMs);
  yesterday.setDate(yesterday.getDate() - 1);
  if (key === keyOf(yesterday.getTime() / 1000)) return words.yesterday;
  return new Intl.DateTimeFormat(locale, { dateStyle: 'full' }).format(time * 1000);
}

/** A moment of a day. */
export function timeOfDay(seconds: number, locale: string): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: 'short' }).format(seconds * 1000);
}

/** Whether one device did both within the same minute. */
export function isContinued(before: Activity | undefined, entry: Activity): boolean {
  const minuteOf = ({ time }: Activity) => Math.floor(time / 60);
  return before?.device_id === entry.device_id && minuteOf(before) === minuteOf(entry);
}
