// Search in a workspace that the server can read: it knows the names.

import { nameOf, parentOf, partsOf, type FoundNode, type SynclineClient } from '@syncline/api';
import { addressOf } from '../shell/route.ts';
import { PAGE_LENGTH, type Hit, type Source } from './search.svelte.ts';

function hitOf(workspace: string, node: FoundNode): Hit {
  const { id, kind, name, size, modified, marks, path } = node;
  const folder = parentOf(path);
  return {
    ...{ id, kind, name, size, modified, marks },
    folders: partsOf(folder).map(nameOf),
    address: addressOf(workspace, kind === 'folder' ? path : folder),
  };
}

export function searchAtServer(client: SynclineClient, workspace: string): Source {
  return {
    async find(q, cursor, signal) {
      const { nodes, next } = await client.call('GET /workspaces/{workspace}/search', {
        params: { workspace },
        query: { q, cursor, limit: PAGE_LENGTH },
        signal,
      });
      return { hits: nodes.map((node) => hitOf(workspace, node)), next };
    },
  };
}
