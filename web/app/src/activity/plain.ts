// What happened in a workspace that the server can read.

import { parentOf, type SynclineClient } from '@syncline/api';
import { addressOf, addressOfTrash } from '../shell/route.ts';
import { transfers } from '../transfers/transfers.svelte.ts';
import { versionsOf } from '../versions/versions.ts';
import type { ActivityOf } from './source.ts';

/** How many entries a page has at most. */
const PAGE = 50;

export function activityOf(client: SynclineClient, workspace: string): ActivityOf {
  return {
    files: addressOf(workspace),
    trash: addressOfTrash(workspace),
    async page(cursor) {
      const { activity, next } = await client.call('GET /workspaces/{workspace}/activity', {
        params: { workspace },
        query: { cursor, limit: PAGE },
      });
      return { items: activity, next };
    },
    async find({ path }) {
      return path === null ? null : client.node(workspace, path);
    },
    addressOf: ({ kind, path }) => addressOf(workspace, kind === 'folder' ? path : parentOf(path)),
    read: ({ path }, signal) => client.file(workspace, path, { signal }),
    save: (file) => transfers.download(workspace, file),
    versions: (file) => versionsOf(client, workspace, file),
  };
}
