// An encrypted workspace is open in a tab, or locked; and so are the folders that are kept in sync with one of it.

import type { SealedWorkspace } from '@syncline/core';
import { unlocked } from '../sealed/unlocked.svelte.ts';

/** Waits until a signal says stop. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Waits until a workspace is open in this tab; returns what says stop as soon as it is locked, or as the signal does. */
export function whenOpen(workspace: string, signal: AbortSignal): Promise<AbortSignal> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const locked = new AbortController();
    let open: SealedWorkspace | undefined;
    const end = $effect.root(() => {
      $effect(() => {
        const now = unlocked.open.get(workspace);
        open ??= now;
        if (!open) return;
        resolve(AbortSignal.any([signal, locked.signal]));
        if (now === open) return;
        locked.abort();
        signal.removeEventListener('abort', stop);
        end();
      });
    });
    const stop = () => {
      end();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}
