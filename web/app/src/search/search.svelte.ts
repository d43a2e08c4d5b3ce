// What is found for what somebody types: asked for when the typing pauses, and never two questions at once.

/** A part of a name, in UTF-16 code units. */
export interface Mark {
  start: number;
  end: number;
}

/** A file or folder that was found. */
export interface Hit {
  id: string;
  kind: 'file' | 'folder' | 'link';
  name: string;
  size: number | null;
  /** Seconds since 1970. */
  modified: number | null;
  /** What of the name matches, in order and apart. */
  marks: Mark[];
  /** The names of the folders above, the topmost first. */
  folders: string[];
  /** What is shown for it: a folder itself, or that in which it is. */
  address: string;
}

export interface Hits {
  hits: Hit[];
  /** Where the list goes on; nothing at its end. */
  next: string | null;
}

/** Who knows the names of a workspace. */
export interface Source {
  find(query: string, cursor: string | undefined, signal: AbortSignal): Promise<Hits>;
}

export const PAUSE_MS = 150;

/** How many are asked for at once. */
export const PAGE_LENGTH = 50;

export class NameSearch {
  hits = $state.raw<Hit[]>([]);
  /** The query to which these are the hits; nothing before the first answer. */
  answered = $state('');
  /** Where the list goes on; nothing at its end. */
  next = $state<string | null>(null);
  isBusy = $state(false);
  failure = $state.raw<unknown>();
  #query = '';
  #asking = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly source: Source,
    readonly pauseMs = PAUSE_MS,
  ) {}

  /** Takes what is typed now; what was asked before is broken off. */
  type(text: string): void {
    const query = text.trim();
    if (query === this.#query) return;
    this.#query = query;
    this.end();
    if (query === '') this.#take('', { hits: [], next: null });
    else {
      this.isBusy = true;
      this.#timer = setTimeout(() => void this.#ask(undefined), this.pauseMs);
    }
  }

  /** Asks again after a failure. */
  async retry(): Promise<void> {
    this.end();
    await this.#ask(undefined);
  }

  /** Reads one more page. */
  async more(): Promise<void> {
    if (this.isBusy || this.next === null) return;
    await this.#ask(this.next);
  }

  /** Breaks off what is asked. */
  end(): void {
    clearTimeout(this.#timer);
    this.#asking.abort();
    this.#asking = new AbortController();
    this.isBusy = false;
  }

  async #ask(cursor: string | undefined): Promise<void> {
    const { signal } = this.#asking;
    const query = this.#query;
    this.isBusy = true;
    try {
      const found = await this.source.find(query, cursor, signal);
      if (signal.aborted) return;
      const before = cursor === undefined ? [] : this.hits;
      this.#take(query, { hits: [...before, ...found.hits], next: found.next });
    } catch (error) {
      if (signal.aborted) return;
      if (cursor === undefined) this.#take('', { hits: [], next: null });
      this.failure = error;
    }
    this.isBusy = false;
  }

  #take(query: string, { hits, next }: Hits): void {
    [this.answered, this.hits, this.next] = [query, hits, next];
    this.failure = undefined;
  }
}

export interface Piece {
  text: string;
  isMarked: boolean;
}

/** A name in pieces, those that are to be marked and those between them. Marks of somebody who counts otherwise lose no letter. */
export function piecesOf(name: string, marks: readonly Mark[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  const add = (end: number, isMarked: boolean) => {
    if (end <= at) return;
    pieces.push({ text: name.slice(at, end), isMarked });
    at = end;
  };
  for (const { start, end } of marks) {
    add(Math.min(start, name.length), false);
    add(Math.min(end, name.length), true);
  }
  add(name.length, false);
  return pieces;
}
