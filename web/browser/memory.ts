// How much memory the process of a page takes, as the system counts it.

import { readFileSync, writeFileSync } from 'node:fs';
import type { Page } from '@playwright/test';

function read(id: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${id}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024;
}

/** Begins to watch; `grown` says how many bytes more the process had at its highest since then. */
export async function rendererMemory(page: Page): Promise<{ grown: () => number }> {
  const session = await page.context().browser()?.newBrowserCDPSession();
  const { processInfo = [] } = (await session?.send('SystemInfo.getProcessInfo')) ?? {};
  await session?.detach();
  const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  if (renderers.length === 0) throw new Error('the page has no process');
  const before = renderers.map((id) => {
    // From here on the highest is counted anew.
    writeFileSync(`/proc/${id}/clear_refs`, '5');
    return read(id, 'VmRSS');
  });
  const grown = () =>
    Math.max(...renderers.map((id, index) => read(id, 'VmHWM') - (before[index] ?? 0)));
  return { grown };
}
