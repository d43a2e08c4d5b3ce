// Hears from the server that there is something new in the log of an encrypted workspace that is open.

import { listen, type SynclineClient } from '@syncline/api';
import { wait } from '../transfers/wait.ts';
import type { SealedWorkspace } from '@syncline/core';

/**
 * How often it is read on for one entry: reading on that had begun for somebody else may have missed it, and what the server keeps back is not
 * asked for without end.
 */
const TRIES = 2;

/** A view of what the log says; reading it anew reads on in the log. */
export interface Following {
  readonly open: SealedWorkspace;
  refresh(): Promise<void>;
}

/** Reads a view anew when the server says that there is something, once at a time, until the signal says stop. */
export async function followLog(
  view: Following,
  client: SynclineClient,
  workspace: string,
  signal: AbortSignal,
): Promise<void> {
  /** The last entry that was told, and how often it is still read on for it. */
  let [told, left] = [0, 0];
  let isReading = false;
  const readOn = async () => {
    isReading = true;
    try {
      while (left > 0 && !signal.aborted) {
        left--;
        const began = performance.now();
        await view.refresh();
        // What is told meanwhile is looked at once more, also where somebody else has read on since.
        if (left < TRIES && view.open.head >= told) left = 0;
        // A long list is not read without a pause while somebody writes into the workspace.
        if (left > 0) await wait(performance.now() - began, signal);
      }
    } finally {
      isReading = false;
    }
  };
  const onEvent = ({ seq }: { seq: number }) => {
    if (seq <= view.open.head) return;
    [told, left] = [Math.max(told, seq), TRIES];
    if (!isReading) void readOn();
  };
  await listen(client, workspace, { onEvent }, signal);
}
