// Compares two texts away from the page.
import { compare } from './lines.ts';

onmessage = ({ data: [before, after] }: MessageEvent<[string, string]>) => {
  postMessage(compare(before, after));
};
