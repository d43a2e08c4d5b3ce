// How long something takes, and whether the page stands still meanwhile.

import { StagMeter, type Stagnation } from '@syncline/core/stag-meter';
import { wait } from '../transfers/wait.ts';

/** For how long the meter ticks before and after, in milliseconds. */
const CALM = 250;

export interface Measured {
  /** How long it took, in milliseconds. */
  time: number;
  stagnation: Stagnation;
  /** When the meter ticked, in milliseconds since the beginning; below zero before it. */
  ticks: number[];
  /** Tasks of more than 50 ms on the page, in milliseconds; nothing where the browser does not tell. */
  longTasks: number[] | null;
}

/** Measures a deed; `onTick` hears each timestamp. The page is left alone for `calm` milliseconds before and after. */
export async function measure(
  deed: () => Promise<void>,
  onTick: (timestamp: number) => void,
  signal: AbortSignal,
  calm = CALM,
): Promise<Measured> {
  const isTold = PerformanceObserver.supportedEntryTypes.includes('longtask');
  const tasks: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => void tasks.push(...list.getEntries()));
  if (isTold) observer.observe({ type: 'longtask' });
  const times: number[] = [];
  const meter = new StagMeter((timestamp) => {
    times.push(timestamp);
    onTick(timestamp);
  });
  meter.start();
  try {
    await wait(calm, signal);
    signal.throwIfAborted();
    const began = performance.now();
    await deed();
    const ended = performance.now();
    await wait(calm, signal);
    const stagnation = meter.stop();
    tasks.push(...observer.takeRecords());
    const longTasks = tasks
      .filter(({ startTime, duration }) => startTime + duration >= began && startTime <= ended)
      .map(({ duration }) => duration);
    const ticks = times.map((time) => time - began);
    return { time: ended - began, stagnation, ticks, longTasks: isTold ? longTasks : null };
  } finally {
    meter.stop();
    observer.disconnect();
  }
}
