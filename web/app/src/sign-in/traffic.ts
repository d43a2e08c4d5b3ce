// How much this browser has sent and received for who is signed in, day by day: what is in requests and answers, without their headers.
// It is kept where the session is and goes with it, so nobody else who uses the computer finds it.

import { lengthOfBody } from '@syncline/api';
import type { Day } from '../storage/figures.ts';

/** How many days are kept. */
const DAYS_KEPT = 30;

const DAY = 86_400;

/** How long it is gathered before it is written, in ms. */
const PAUSE = 1_000;

/** What came and went on days, by when they began (UTC, in seconds since 1970). */
type Sums = Map<number, [sent: number, received: number]>;

export interface DayTraffic {
  sent: Day[];
  received: Day[];
}

function add(sums: Sums, day: number, sent: number, received: number): void {
  const [sentBefore, receivedBefore] = sums.get(day) ?? [0, 0];
  sums.set(day, [sentBefore + sent, receivedBefore + received]);
}

const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;

/** What was written; nothing of what is none of ours. */
function parse(text: string | null): Sums {
  const sums: Sums = new Map();
  try {
    const lines: unknown = JSON.parse(text ?? '[]');
    for (const line of Array.isArray(lines) ? (lines as unknown[]) : []) {
      if (!Array.isArray(line) || line.length !== 3 || !line.every(isCount)) continue;
      const [day, sent, received] = line as [number, number, number];
      add(sums, day, sent, received);
    }
  } catch {
    // Somebody else wrote it: nothing is known.
  }
  return sums;
}

/** Where something is kept under a name. */
type Place = Pick<Storage, 'getItem' | 'setItem'>;

export class Traffic {
  /** What was counted and is not written yet. */
  #pending: Sums = new Map();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly key: string,
    /** Where the session is; nothing where nobody is signed in. */
    readonly place: () => Place | null,
    readonly now: () => number = Date.now,
  ) {}

  note(sent: number, received: number): void {
    add(this.#pending, Math.floor(this.now() / 1000 / DAY) * DAY, sent, received);
    this.#timer ??= setTimeout(() => this.write(), PAUSE);
  }

  /** Adds what was counted to what is written: another tab may have written meanwhile. */
  write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const place = this.place();
    if (!place || this.#pending.size === 0) return;
    const sums = this.#all(place);
    try {
      place.setItem(this.key, JSON.stringify([...sums].map(([day, both]) => [day, ...both])));
      this.#pending.clear();
    } catch {
      // There is no room: it is shown as long as this page is open.
    }
  }

  /** Forgets what is not written yet; what is goes with the session. */
  forget(): void {
    this.#pending.clear();
  }

  /** The days on which anything came or went, the oldest first. */
  days(): DayTraffic {
    const sums = [...this.#all(this.place())].sort(([a], [b]) => a - b);
    return {
      sent: sums.map(([day, [bytes]]) => ({ day, bytes })),
      received: sums.map(([day, [, bytes]]) => ({ day, bytes })),
    };
  }

  #all(place: Place | null): Sums {
    const sums = parse(place?.getItem(this.key) ?? null);
    for (const [day, [sent, received]] of this.#pending) add(sums, day, sent, received);
    const oldest = this.now() / 1000 - DAYS_KEPT * DAY;
    for (const day of sums.keys()) if (day <= oldest) sums.delete(day);
    return sums;
  }
}

/** A `fetch` that tells how much it sends, once there is an answer to it. */
export function countingSent(
  note: (sent: number) => void,
  by: typeof fetch = (input, init) => fetch(input, init),
): typeof fetch {
  return async (input, init) => {
    const answer = await by(input, init);
    note(lengthOfBody(init?.body));
    return answer;
  };
}

/** Whether somebody who is signed in has asked for it: not a part of the app, and not what lies behind a link. */
export function isOfSession(address: string): boolean {
  const { pathname } = new URL(address);
  return pathname.startsWith('/api/v1/') && !pathname.startsWith('/api/v1/public/');
}

/** Tells how much each answer had, as it came: the browser has counted, and what is read stays untouched. */
export function countReceived(note: (received: number) => void): void {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as PerformanceResourceTiming[]) {
      if (isOfSession(entry.name)) note(entry.encodedBodySize);
    }
  });
  observer.observe({ type: 'resource', buffered: true });
}
