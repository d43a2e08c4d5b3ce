// Counts what goes over the wire: bodies of requests and answers, without headers.

import { lengthOfBody } from '@syncline/api';

export interface Traffic {
  /** Bytes sent. */
  up: number;
  /** Bytes received. */
  down: number;
  /** How often something was sent and waited for; requests at the same time count once. */
  roundTrips: number;
  /** For how long something was waited for, in milliseconds. */
  waited: number;
}

const NOTHING: Traffic = { up: 0, down: 0, roundTrips: 0, waited: 0 };

/** A `fetch` that counts. */
export class Wire {
  readonly #fetch: typeof fetch;
  #traffic = { ...NOTHING };
  #open = 0;
  #since = 0;

  constructor(by: typeof fetch = (input, init) => fetch(input, init)) {
    this.#fetch = by;
  }

  /** Returns what was counted since the last time, and begins anew. */
  take(): Traffic {
    const found = this.#traffic;
    this.#traffic = { ...NOTHING };
    return found;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const traffic = this.#traffic;
    if (this.#open++ === 0) {
      traffic.roundTrips++;
      this.#since = performance.now();
    }
    try {
      traffic.up += lengthOfBody(init?.body);
      const answer = await this.#fetch(input, init);
      const bytes = await answer.arrayBuffer();
      traffic.down += bytes.byteLength;
      const { status, statusText, headers } = answer;
      const content = bytes.byteLength > 0 ? bytes : null;
      return new Response(content, { status, statusText, headers });
    } finally {
      if (--this.#open === 0) traffic.waited += performance.now() - this.#since;
    }
  };
}
