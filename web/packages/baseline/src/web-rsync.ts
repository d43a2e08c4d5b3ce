// WebRsync as its paper has it ("Towards Web-based Delta Synchronization for Cloud Storage Services", FAST 2018, section 3.1): the
// client searches the blocks of the server in the new version.

import { deriveKey, hash } from './blake3.ts';
import { Recipe } from './recipe.ts';
import { Search } from './search.ts';
import { readSums } from './sums.ts';

const SESSION_LENGTH = 16;
const WORKSPACE_LENGTH = 16;
const BLOCK_SUMS = 'syncline delta v1: block sums';

/** Strong fingerprints, byte by byte from each match on. */
const HOW = 2;

export interface WebRsyncOptions {
  /** The encoded genesis of the workspace. */
  genesis: Uint8Array;
  /** 16 random bytes; by default they are drawn. */
  session?: Uint8Array;
}

/** What is to be sent after the sums have come. */
export interface RecipeBody {
  body: Uint8Array<ArrayBuffer>;
  /** How many bytes of it are bytes of the file. */
  literal: number;
}

/** One exchange. */
export class WebRsync {
  /** The name and secret of the exchange. */
  readonly session: Uint8Array;
  readonly #key: Uint8Array;
  /** The body of the first request. */
  readonly opening: Uint8Array<ArrayBuffer>;

  constructor({ genesis, session }: WebRsyncOptions) {
    const workspace = hash(genesis).subarray(0, WORKSPACE_LENGTH);
    this.session = session ?? crypto.getRandomValues(new Uint8Array(SESSION_LENGTH));
    const material = joined([workspace, this.session]);
    this.#key = deriveKey(BLOCK_SUMS, material);
    this.opening = framed([joined([Uint8Array.of(0x64, 1, 0), material, Uint8Array.of(HOW)])]);
  }

  /** Makes the body of the second request from the sums that the server told; throws [BaselineError] where those are none. */
  recipe(message: Uint8Array, file: Uint8Array): RecipeBody {
    const sums = readSums(message, this.session);
    const search = new Search(sums, this.#key, file);
    const recipe = new Recipe(this.session);
    let cursor = 0;
    for (let found = search.next(); found; found = search.next()) {
      recipe.literal(file.subarray(cursor, found.position));
      recipe.copy(found.block);
      cursor = found.position + found.length;
    }
    recipe.literal(file.subarray(cursor));
    const body = framed(recipe.finish(file.length, hash(file)));
    return { body, literal: recipe.literalLength };
  }
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let start = 0;
  for (const part of parts) {
    all.set(part, start);
    start += part.length;
  }
  return all;
}

/** Puts each message behind its length in four bytes, little-endian. */
function framed(messages: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return joined(
    messages.flatMap((message) => {
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, message.length, true);
      return [length, message];
    }),
  );
}
