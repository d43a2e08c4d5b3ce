// Which pages of the app live in this browser, so that each leaves alone what another one has, and takes over what nobody has.

import { randomHex } from '@syncline/api';

/** This page. */
export const PAGE = randomHex(8);

const lockOf = (page: string) => `syncline-page-${page}`;

/** Nothing in browsers without them, and where no browser is. */
const locks = (globalThis as Partial<typeof globalThis>).navigator?.locks as
  LockManager | undefined;

void locks?.request(lockOf(PAGE), () => new Promise(() => undefined)).catch(() => null);

/** Returns what says of a page whether it lives. Where the browser does not tell only this one does. */
export async function livePages(): Promise<(page: string) => boolean> {
  const { held = [] } = (await locks?.query()) ?? {};
  const names = new Set(held.map(({ name }) => name));
  return (page) => page === PAGE || names.has(lockOf(page));
}
