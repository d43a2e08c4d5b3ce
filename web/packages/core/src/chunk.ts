import { ChunkStream } from '../dist/core.js';
import { piecesOf } from './pieces.ts';
import type { Calls, ChunkList } from './protocol.ts';

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
      // The module copies it: its bytes become the next piece.
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
