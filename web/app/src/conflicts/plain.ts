// The conflicts of a workspace that the server can read.

import type { SynclineClient } from '@syncline/api';
import { addressOfConflicts } from '../shell/route.ts';
import { transfers } from '../transfers/transfers.svelte.ts';
import { decide, takeBack } from './deciding.ts';
import type { ConflictsOf } from './source.ts';

export function conflictsOf(client: SynclineClient, workspace: string): ConflictsOf {
  return {
    address: addressOfConflicts(workspace),
    page: (cursor, limit) =>
      client.call('GET /workspaces/{workspace}/conflicts', {
        params: { workspace },
        query: { cursor, limit },
      }),
    async maker({ path, version }) {
      const { versions } = await client.versions(workspace, path);
      return versions.find((one) => one.version === version) ?? null;
    },
    read: ({ path }, signal) => client.file(workspace, path, { signal }),
    save: (side) => transfers.download(workspace, side),
    async decide(conflict, keep, name) {
      const stands = await decide(client, workspace, conflict, keep, name);
      const undo = () => takeBack(client, workspace, conflict, keep, stands);
      return { name: stands.name, undo };
    },
  };
}
