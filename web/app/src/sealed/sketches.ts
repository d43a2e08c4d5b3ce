// Sketches of files that were put into an encrypted workspace from this browser, in one place with those of plain ones, which are forgotten
// with them: the core has sealed them.

import type { SealedSketches } from '@syncline/core';
import { keepSketch, sketchOf } from '../transfers/sketches.ts';

export function sketchesIn(workspace: string): SealedSketches {
  return {
    get: async (version) => (await sketchOf(workspace, version))?.bytes ?? null,
    keep: (version, before, bytes) => keepSketch({ workspace, etag: version, before }, { bytes }),
  };
}
