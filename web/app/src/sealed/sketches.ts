// Sketches of files that were put into an encrypted workspace from this browser, in one place with those of plain ones, which are forgotten
// with them: the core has sealed them.

import type { SealedSketches } from '@syncline/core';
import { keepSketch, signedInSince, sketchOf } from '../transfers/sketches.ts';

export function sketchesIn(workspace: string): SealedSketches {
  const since = signedInSince();
  return {
    get: async (name) => (await sketchOf(workspace, name))?.bytes ?? null,
    keep: async ({ name, bytes }, before) => {
      // What is on its way when somebody signs out comes too late.
      if (since !== signedInSince()) return;
      await keepSketch({ workspace, etag: name, before }, { bytes });
    },
  };
}
