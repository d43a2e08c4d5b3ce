// The list of what was deleted in a workspace, page by page, the newest first.

import type { DeletedNode, SynclineClient } from '@syncline/api';
import { PagedList, type Page } from '../shell/paged-list.svelte.ts';

export class Trash extends PagedList<DeletedNode> {
  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
    /** How many nodes a page has at most; as many as the server likes by default. */
    readonly pageLength?: number,
  ) {
    super();
  }

  protected override async page(cursor: string | undefined): Promise<Page<DeletedNode>> {
    const { nodes, next } = await this.client.call('GET /workspaces/{workspace}/deleted', {
      params: { workspace: this.workspace },
      query: { cursor, limit: this.pageLength },
    });
    return { items: nodes, next };
  }
}
