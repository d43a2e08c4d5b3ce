// The content of a file: all of it, or what is missing.

/** The content of a file, as it comes in. */
export interface FileAnswer {
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** How much comes in this answer. */
  size: number | null;
  /** Where it begins; at the start where nothing is said, and `NaN` where it says itself to be a part, and not which one. */
  from?: number;
  /** Which version it is. */
  etag?: string | null;
}

/** A place in the middle of a version of a file. */
export interface Place {
  offset: number;
  etag: string;
}

/** What of a file is asked for. */
export interface Reading {
  version?: number | undefined;
  signal?: AbortSignal | undefined;
  /** All of it comes where this is not the newest version any more. */
  from?: Place | undefined;
}

/** Says in the words of HTTP where to begin. */
export function rangeOf(place: Place | undefined): Record<string, string> {
  return place ? { range: `bytes=${place.offset}-`, 'if-range': place.etag } : {};
}

/** The content in an answer to such a request. */
export function answerOf(response: Response, place?: Place): FileAnswer {
  const length = response.headers.get('content-length');
  return {
    body: response.body ?? new Blob([]).stream(),
    size: length === null ? null : Number(length),
    from: place && response.status === 206 ? beginningOf(response) : 0,
    etag: response.headers.get('etag'),
  };
}

/** Where the part of a file begins that an answer has, as it says itself; nowhere, `NaN`, where it does not. */
function beginningOf({ headers }: Response): number {
  const said = /^bytes (\d+)-\d+\/(?:\d+|\*)$/.exec(headers.get('content-range') ?? '');
  return Number(said?.[1] ?? NaN);
}
