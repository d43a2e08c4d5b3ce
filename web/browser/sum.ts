import { createHash } from 'node:crypto';

/** What two files have in common only where they are the same, byte for byte. */
export const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
