// How much memory a process takes, that of a page, or all those of the browser, as the system counts it.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Page } from '@playwright/test';

function read(id: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${id}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
}

/** Begins to watch a process; `grown` says how many bytes more it had at its highest since then. */
export function processMemory(id: number): { grown: () => number } {
  const growths = watch([id]);
  return { grown: () => growths()[0] ?? 0 };
}

/** The same for the process of a page. */
export async function rendererMemory(page: Page): Promise<{ grown: () => number }> {
  const processes = await processesOf(page);
  const renderers = processes.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  if (renderers.length === 0) throw new Error('the page has no process');
  const growths = watch(renderers);
  return { grown: () => Math.max(...growths()) };
}

/**
 * The same for all processes of the browser together: the sum of what each had more at its own highest, so rather too much than too
 * little.
 */
export async function browserMemory(page: Page): Promise<{ grown: () => Growth }> {
  const processes = await processesOf(page);
  const growths = watch(processes.map(({ id }) => id));
  return {
    grown: () => {
      const each = growths();
      const bytes = each.reduce((sum, one) => sum + one, 0);
      const words = processes.map(
        ({ type }, index) => `${type} ${((each[index] ?? 0) / (1024 * 1024)).toFixed(0)}`,
      );
      return { bytes, words: words.join(', ') };
    },
  };
}

/** How many bytes more all processes had, and each of them in MiB, in words. */
export interface Growth {
  bytes: number;
  words: string;
}

async function processesOf(page: Page): Promise<{ type: string; id: number }[]> {
  const session = await page.context().browser()?.newBrowserCDPSession();
  const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {};
  await session?.detach();
  return processInfo;
}

function watch(ids: number[]): () => number[] {
  const before = ids.map((id) => {
    // From here on the highest is counted anew.
    writeFileSync(`/proc/${id}/clear_refs`, '5');
    return read(id, 'VmRSS');
  });
  return () => ids.map((id, index) => read(id, 'VmHWM') - (before[index] ?? 0));
}
