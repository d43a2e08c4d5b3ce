// What happened in a workspace, page by page, the newest first.

import type { Activity } from '@syncline/api';
import { PagedList, type Page } from '../shell/paged-list.svelte.ts';
import type { ActivityOf } from './source.ts';

export class Happenings extends PagedList<Activity> {
  constructor(readonly source: ActivityOf) {
    super();
  }

  protected override page(cursor: string | undefined): Promise<Page<Activity>> {
    return this.source.page(cursor);
  }
}
