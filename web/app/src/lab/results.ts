// What the rows of all runs say together, and as a table for other programs.

import type { Row } from './bench.ts';
import type { Edit } from './sample.ts';

/** What was measured on. */
export interface About extends Edit {
  /** Bytes of the old and the new version. */
  before: number;
  after: number;
}

/** Returns one row for each method: that in the middle of its times. */
export function middleOf(rows: Row[]): Row[] {
  const middles: Row[] = [];
  for (const method of new Set(rows.map((row) => row.method))) {
    const all = rows.filter((row) => row.method === method);
    // What went wrong once is not passed over.
    const wrong = all.find(({ failure, isSame }) => failure !== undefined || !isSame);
    const sorted = all.toSorted((one, other) => one.time - other.time);
    const middle = wrong ?? sorted[Math.floor((sorted.length - 1) / 2)];
    if (middle) middles.push(middle);
  }
  return middles;
}

const HEAD =
  'method,run,before_bytes,after_bytes,edit,edit_bytes,places,seed,time_ms,waited_ms,up_bytes,down_bytes,' +
  'round_trips,ticks,longest_gap_ms,missed_ticks,long_tasks,longest_task_ms,result';

/** For how long the page or its workers computed, in milliseconds: whenever nothing was waited for. */
export function computedIn({ time, waited }: Row): number {
  return Math.max(0, time - waited);
}

/** Writes all rows as CSV. */
export function csvOf(rows: Row[], about: About): string {
  const lines = rows.map((row) => {
    const { stagnation, longTasks } = row;
    const result = row.failure === undefined ? (row.isSame ? 'same' : 'different') : 'failed';
    return [
      row.method,
      row.run,
      about.before,
      about.after,
      about.kind,
      about.size,
      about.places,
      about.seed,
      row.time.toFixed(1),
      row.waited.toFixed(1),
      row.up,
      row.down,
      row.roundTrips,
      stagnation.ticks,
      stagnation.longest.toFixed(1),
      stagnation.missed,
      longTasks?.length ?? '',
      longTasks === null ? '' : Math.max(0, ...longTasks).toFixed(0),
      result,
    ].join(',');
  });
  return [HEAD, ...lines, ''].join('\r\n');
}

/** How long a bar is, from 0 to 1, where each tenth of the longest has the same step less. */
export function barOf(value: number, longest: number): number {
  return longest > 0 ? Math.log10(1 + value) / Math.log10(1 + longest) : 0;
}
