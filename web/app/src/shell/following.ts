// Keeps what is shown of a workspace as its log is.

import { listen, type SynclineClient } from '@syncline/api';

/**
 * Reads a view at once, and anew whenever the server says where the log ends now; also the first time, since something may have come
 * between the reading and the listening. Returns what ends it.
 */
export function follow(
  client: SynclineClient,
  workspace: string,
  view: { refresh(): Promise<void> },
  onHead: () => void = () => undefined,
): () => void {
  const stop = new AbortController();
  let last = -1;
  const onEvent = ({ seq }: { seq: number }) => {
    if (seq !== last) void view.refresh();
    last = seq;
    onHead();
  };
  void view.refresh();
  void listen(client, workspace, { onEvent }, stop.signal);
  return () => stop.abort();
}
