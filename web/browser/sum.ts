import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** What two files have in common only where they are the same, byte for byte. */
export const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** The same of a file on the disk, however large it is. */
export async function sumOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
