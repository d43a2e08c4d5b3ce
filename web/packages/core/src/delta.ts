import type { JobOptions } from './core.ts';
import { CoreError } from './error.ts';
import { frameOf } from './frames.ts';
import type { CallOptions, Lease } from './pool.ts';
import type { DeltaLength } from './protocol.ts';

export interface DeltaOptions extends JobOptions {
  /** The encoded genesis of the workspace. */
  genesis: Uint8Array;
  /**
   * The version that is there: the chunk list that the server tells, or what [Delta.kept] returned. Without it the list is
   * learnt by questions, for about as many bytes as it differs from that of the new version.
   */
  base: Uint8Array | null;
  /** Whether `base` was kept: then nothing need be asked. */
  isKept?: boolean;
  /** The bytes of a `base` that was kept, where they were kept, too: then changes are found to the byte. All of them are in memory meanwhile. */
  old?: Blob | undefined;
  /** 16 random bytes; by default they are drawn. */
  session?: Uint8Array;
}

const SESSION_LENGTH = 16;

/** How long a secret is by which chunks are named, and how long those are on average by which a body is. */
const SECRET_LENGTH = 32;
const NAMED_AVERAGE = 1024 * 1024;

/** What is longer than this goes into a blob. */
const BYTES_MAX = 64 * 1024;

/** Bytes to send: in a blob, so that they are not in the memory of the page, but for a few, which leave sooner as they are. */
export type Sendable = Blob | Uint8Array<ArrayBuffer>;

/** Makes bytes ready to be sent. Of long ones that are sent as they are the page stands still for a tenth of a second for a megabyte. */
export function sendableOf(bytes: Uint8Array<ArrayBuffer>): Sendable {
  return bytes.length > BYTES_MAX ? new Blob([bytes]) : bytes;
}

/** Makes a message ready to be sent, if there is one. */
function questionOf(message: Uint8Array | null): Sendable | null {
  return message && sendableOf(frameOf(message));
}

/** What is to be sent. */
export interface DeltaBody extends DeltaLength {
  body: Sendable;
}

/** A new version of a file as what has changed in it: one exchange, in a worker of its own until it is ended. */
export class Delta {
  readonly #lease: Lease;
  readonly #options: JobOptions;
  /** What to send, where that is known from the beginning. */
  readonly #made: DeltaBody | null;
  #question: Sendable | null;

  private constructor(
    lease: Lease,
    options: JobOptions,
    begun: { question: Sendable | null; made: DeltaBody | null },
  ) {
    this.#lease = lease;
    this.#options = options;
    this.#question = begun.question;
    this.#made = begun.made;
  }

  static async begin(lease: Lease, file: Blob, options: DeltaOptions): Promise<Delta> {
    const { genesis, base, isKept = false, old = null, onProgress } = options;
    const session = options.session ?? drawSession();
    try {
      if (base && isKept) {
        const ask = { file, genesis, session, base, old };
        const made = await collect(options, (hear) => lease.call('deltaOfKept', ask, hear));
        return new Delta(lease, options, { question: null, made });
      }
      const ask = { file, genesis, session, base };
      const question = questionOf(await lease.call('deltaBegin', ask, { onProgress }));
      return new Delta(lease, options, { question, made: null });
    } catch (error) {
      await lease.end();
      throw error;
    }
  }

  /**
   * A question to the server whose answer is to be taken, if there is one: a body of one message. One that asks for sums may be
   * left out; then the delta is larger.
   */
  get question(): Sendable | null {
    return this.#question;
  }

  /** Takes the answer to the question; there may be another one then. */
  async take(answer: Uint8Array): Promise<void> {
    const { onProgress } = this.#options;
    const next = await this.#lease.call('deltaTold', { message: answer }, { onProgress });
    this.#question = questionOf(next);
  }

  async #takeList(list: Uint8Array): Promise<void> {
    const next = await this.#lease.call('deltaList', { list });
    this.#question = questionOf(next);
  }

  /**
   * Asks what there is to ask; `ask` returns what the server says. Where the list of what is there is shorter than what would
   * tell the difference, `list` fetches it.
   */
  async askAll(
    ask: (question: Sendable) => Promise<Uint8Array>,
    list: () => Promise<Uint8Array>,
  ): Promise<void> {
    try {
      await this.#askOn(ask);
    } catch (error) {
      if (!(error instanceof CoreError) || error.code !== 'too_different') throw error;
      await this.#takeList(await list());
      await this.#askOn(ask);
    }
  }

  async #askOn(ask: (question: Sendable) => Promise<Uint8Array>): Promise<void> {
    while (this.#question) await this.take(await ask(this.#question));
  }

  /** Makes the delta. */
  async messages(): Promise<DeltaBody> {
    if (this.#made) return this.#made;
    return collect(this.#options, (options) => this.#lease.call('deltaSend', null, options));
  }

  /** Makes what an answer wants besides: it goes behind the same messages. */
  wanted(answer: Uint8Array): Promise<DeltaBody> {
    return collect(this.#options, (options) =>
      this.#lease.call('deltaWanted', { answer }, options),
    );
  }

  /**
   * Names a body by its chunks, by which it is known again: with the same session, base and file the same one is made. The worker of this
   * delta reads it piece by piece; another one may not be free before this ends.
   */
  async nameOf(body: Blob): Promise<Uint8Array<ArrayBuffer>> {
    const secret = new Uint8Array(SECRET_LENGTH);
    const ask = { file: body, secret, average: NAMED_AVERAGE };
    return (await this.#lease.call('chunk', ask)).ids;
  }

  /**
   * Returns what to keep of the new version, 2.5 % of it: the next delta against it needs one request. The version is sent by then, so
   * the signal of the exchange ends nothing any more.
   */
  kept(): Promise<Uint8Array<ArrayBuffer> | null> {
    this.#lease.unbind();
    return this.#lease.call('deltaKept', null);
  }

  end(): Promise<void> {
    return this.#lease.end();
  }
}

/** Makes one body of what a call gives. */
export async function collect(
  { onProgress }: JobOptions,
  call: (options: CallOptions) => Promise<DeltaLength>,
): Promise<DeltaBody> {
  const parts: Sendable[] = [];
  const onPart = (bytes: Uint8Array<ArrayBuffer>) => void parts.push(sendableOf(bytes));
  const length = await call({ onProgress, onPart });
  const [first, ...rest] = parts;
  return { ...length, body: first && rest.length === 0 ? first : new Blob(parts) };
}

/** Draws the name and secret of an exchange. */
export function drawSession(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(SESSION_LENGTH));
}
