// Hears from the server that there is something new in the log of an encrypted workspace that is open.

import { listen, type SynclineClient } from '@syncline/api';
import type { SealedWorkspace } from '@syncline/core';

/** A view of what the log says; reading it anew reads on in the log. */
export interface Following {
  readonly open: SealedWorkspace;
  refresh(): Promise<void>;
}

/** Reads a view anew whenever the server says that there is something, until the signal says stop. */
export async function followLog(
  view: Following,
  client: SynclineClient,
  workspace: string,
  signal: AbortSignal,
): Promise<void> {
  const onEvent = ({ seq }: { seq: number }) => {
    if (seq > view.open.head) void view.refresh();
  };
  await listen(client, workspace, { onEvent }, signal);
}
