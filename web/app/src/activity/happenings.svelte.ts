// What happened in a workspace, page by page, the newest first.

import type { Activity, SynclineClient } from '@syncline/api';
import { PagedList, type Page } from '../shell/paged-list.svelte.ts';

export class Happenings extends PagedList<Activity> {
  constructor(
    readonly client: SynclineClient,
    readonly workspace: string,
    /** How many entries a page has at most. */
    readonly pageLength = 50,
  ) {
    super();
  }

  protected override async page(cursor: string | undefined): Promise<Page<Activity>> {
    const { activity, next } = await this.client.call('GET /workspaces/{workspace}/activity', {
      params: { workspace: this.workspace },
      query: { cursor, limit: this.pageLength },
    });
    return { items: activity, next };
  }
}
