import { ChunkStream } from '../dist/core.js';
import type { Calls, ChunkList } from './protocol.ts';

/** How many bytes are read at a time; while one piece is gone through, the next one is read. */
const PIECE_LENGTH = 4 * 1024 * 1024;

/** Gives the pieces of a file, in order. */
async function* piecesOf(file: Blob): AsyncGenerator<Uint8Array> {
  const read = (start: number) => {
    const piece = file.slice(start, start + PIECE_LENGTH).arrayBuffer();
    // Whoever waits for it hears of it; until then nobody does.
    piece.catch(() => undefined);
    return piece;
  };
  let next = read(0);
  for (let start = 0; start < file.size; start += PIECE_LENGTH) {
    const piece = await next;
    if (start + PIECE_LENGTH < file.size) next = read(start + PIECE_LENGTH);
    yield new Uint8Array(piece);
  }
}

/** Cuts and names a file, a piece at a time. */
export async function chunk(
  { file, secret, average }: Calls['chunk']['ask'],
  onProgress: (done: number) => void,
): Promise<ChunkList> {
  const stream = new ChunkStream(secret, average);
  try {
    const lengths: Uint32Array[] = [];
    const ids: Uint8Array[] = [];
    const collect = () => {
      lengths.push(stream.takeLengths());
      ids.push(stream.takeIds());
    };
    let done = 0;
    for await (const piece of piecesOf(file)) {
      stream.push(piece);
      collect();
      done += piece.length;
      onProgress(done);
    }
    stream.finish();
    collect();
    return { lengths: joined(Uint32Array, lengths), ids: joined(Uint8Array, ids) };
  } finally {
    stream.free();
  }
}

type Numbers = Uint8Array | Uint32Array;

function joined<Kind extends Numbers>(kind: new (length: number) => Kind, parts: Numbers[]): Kind {
  const all = new kind(parts.reduce((sum, part) => sum + part.length, 0));
  let start = 0;
  for (const part of parts) {
    all.set(part, start);
    start += part.length;
  }
  return all;
}
