// Search in an encrypted workspace that is open: its worker knows the names, and nothing is sent.

import type { SealedHit, SealedWorkspace } from '@syncline/core';
import { listedOf } from '../sealed/view.svelte.ts';
import { addressOfSealed } from '../shell/route.ts';
import { PAGE_LENGTH, type Hit, type Source } from './search.svelte.ts';

function hitOf(workspace: string, hit: SealedHit): Hit {
  const { id, kind, name, size, modified } = listedOf(hit);
  return {
    ...{ id, kind, name, size, modified, marks: hit.marks },
    folders: hit.folders.map((folder) => folder.name),
    address: addressOfSealed(workspace, kind === 'folder' ? id : hit.folders.at(-1)?.id),
  };
}

export function searchInWorker(open: SealedWorkspace, workspace: string): Source {
  return {
    async find(query, cursor, signal) {
      signal.throwIfAborted();
      const { hits, next } = await open.search(query, cursor ?? null, PAGE_LENGTH);
      return { hits: hits.map((hit) => hitOf(workspace, hit)), next };
    },
  };
}
