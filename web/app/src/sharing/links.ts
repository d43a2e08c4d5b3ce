// What a new link is to be, as somebody fills it in; passwords that are made up.

import type { NewLink, NodePath } from '@syncline/api';

export const DAY_SECONDS = 86_400;
export const DAYS = [1, 7, 30] as const;

/** When a link is to end: after so many days, never, or with a day that is named. */
export type Expiry = (typeof DAYS)[number] | 'never' | 'day';

export interface Draft {
  expiry: Expiry;
  /** `2026-11-29`, as a field of the browser has it. */
  day: string;
  password: string;
  /** As it was typed. */
  limit: number | null | undefined;
}

/** For how many seconds a link is to lead anywhere; nothing for ever. */
export function secondsOf({ expiry, day }: Draft, nowMs: number): number | null {
  if (expiry === 'never') return null;
  if (expiry !== 'day') return expiry * DAY_SECONDS;
  // To the last second of that day, where the person is.
  return Math.floor((Date.parse(`${day}T23:59:59`) - nowMs) / 1000);
}

/** What the server is asked for; nothing where the day that was named is over. */
export function requestOf(draft: Draft, path: NodePath, nowMs: number): NewLink | null {
  const seconds = secondsOf(draft, nowMs);
  if (seconds !== null && !(seconds > 0)) return null;
  return {
    path,
    expires_in_seconds: seconds,
    password: draft.password === '' ? null : draft.password,
    downloads_max: draft.limit ?? null,
  };
}

/** 32 signs that nobody mistakes for each other, so that five bits are one sign. */
const SIGNS = 'abcdefghjkmnpqrstuvwxyz023456789';

/** Makes up a password of 80 random bits, in groups that can be read out. */
export function makePassword(random = crypto.getRandomValues(new Uint8Array(16))): string {
  const text = Array.from(random, (byte) => SIGNS[byte % SIGNS.length]).join('');
  return (text.match(/.{4}/g) ?? []).join('-');
}
