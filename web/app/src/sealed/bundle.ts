// What the app consists of, as this server sends it. A browser does what its server sends it to do, so who keeps something from a server
// wants to know whether that is the app that others have, too.

import { hexOf } from '@syncline/api';

/** Where the list of the app's files is. */
const LIST = 'files.txt';
const LINE = /^([0-9a-f]{64}) {2}(\S.*)$/;
const AT_ONCE = 8;

export interface Bundle {
  /** SHA-256 of the list, in hexadecimal digits: one number for all files. */
  hash: string;
  files: number;
  /** What is not what the list says, or what the page has loaded and the list has not. */
  wrong: string[];
}

/** Hashes as SHA-256 does. */
async function hashOf(bytes: BufferSource): Promise<string> {
  return hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}

/** Reads the list; throws a `RangeError` where it is none. */
function parse(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split('\n').slice(0, -1)) {
    const [, hash, name] = LINE.exec(line) ?? [];
    if (hash === undefined || name === undefined) throw new RangeError('no list of files');
    found.set(name, hash);
  }
  if (!found.has('index.html')) throw new RangeError('no list of files');
  return found;
}

/**
 * Reads every file of the app again, and compares it with the list.
 * @param read Returns what the server sends for a path.
 * @param loaded The paths of what the page has loaded of the app.
 */
export async function readBundle(
  read: (path: string) => Promise<ArrayBuffer>,
  loaded: readonly string[],
): Promise<Bundle> {
  const list = await read(`/${LIST}`);
  const files = parse(new TextDecoder('utf-8', { fatal: true }).decode(list));
  const wrong = loaded.map((path) => path.slice(1)).filter((name) => !files.has(name));
  const waiting = [...files];
  async function compare(): Promise<void> {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [name, hash] = next;
      // The page itself has no other address.
      const bytes = await read(name === 'index.html' ? '/' : `/${name}`);
      if ((await hashOf(bytes)) !== hash) wrong.push(name);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, compare));
  return { hash: await hashOf(list), files: files.size, wrong: wrong.sort() };
}

/** Returns the paths of the app's files that this page has loaded. */
export function loadedFiles(): string[] {
  const names = performance.getEntriesByType('resource').map((entry) => new URL(entry.name));
  const own = names.filter((url) => url.origin === location.origin);
  return [...new Set(own.map((url) => url.pathname))].filter((path) => path.startsWith('/assets/'));
}

/** Reads a file of the app from this server, or from what the browser keeps of it. */
export async function readFile(path: string): Promise<ArrayBuffer> {
  const answer = await fetch(path);
  if (!answer.ok) throw new RangeError(`${path} is not there`);
  return answer.arrayBuffer();
}
