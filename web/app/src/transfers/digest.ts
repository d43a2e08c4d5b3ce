import { loadCore } from '../core.ts';
import { digestOf } from './content.ts';

/** What a content is, as a text that is equal for equal ones. */
export const digest = async (file: Blob, signal: AbortSignal): Promise<string> =>
  digestOf(await loadCore(), file, signal);
