// Says what of a choice cannot be read: it is not sent, and nobody would miss it otherwise.

import { notices } from '../shell/notices.svelte.ts';
import { shownName } from '../words/format.ts';
import { t } from '../words/words.svelte.ts';
import type { Chosen, OnUnreadable } from './dropped.ts';

/** Returns what was chosen, once somebody was told what was left out. */
export async function telling(
  choose: (onUnreadable: OnUnreadable) => Promise<Chosen[]>,
): Promise<Chosen[]> {
  const unreadable: string[] = [];
  const chosen = await choose((path) => unreadable.push(path));
  const [first] = unreadable;
  if (first !== undefined)
    notices.fail(t().tray.unreadable(shownName(first), unreadable.length - 1));
  return chosen;
}
