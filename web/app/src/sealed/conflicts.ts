// What two sides changed in an encrypted workspace, which the browser reads from the log and decides there.

import type { Conflict, Node } from '@syncline/api';
import type { SealedConflict, SealedNode, SealedWorkspace } from '@syncline/core';
import type { ConflictsOf } from '../conflicts/source.ts';
import { notices } from '../shell/notices.svelte.ts';
import { addressOfSealed, SEALED_CONFLICTS } from '../shell/route.ts';
import { transfers } from '../transfers/transfers.svelte.ts';
import { t } from '../words/words.svelte.ts';
import { unlocked } from './unlocked.svelte.ts';
import { listedOf, pathOf } from './view.svelte.ts';

const sideOf = (node: SealedNode, folders: readonly string[]): Node => ({
  ...listedOf(node),
  path: pathOf(folders, node.name),
});

function conflictOf(found: SealedConflict): Conflict {
  const { copy, copyFolders, original, originalFolders } = found;
  return {
    base: found.base,
    copy: sideOf(copy, copyFolders),
    device_id: found.device,
    device_name: found.deviceName,
    original: original && sideOf(original, originalFolders),
    original_id: found.originalId,
    seq: found.seq,
    time: Math.floor(found.timeMs / 1000),
  };
}

export function conflictsOf(open: SealedWorkspace, workspace: string): ConflictsOf {
  const begun = { id: workspace, open };
  const read = ({ id, size }: Node, signal: AbortSignal) =>
    Promise.resolve(unlocked.read(begun, { file: id }, size ?? 0, signal));
  return {
    address: addressOfSealed(workspace, SEALED_CONFLICTS),
    async page(cursor, limit) {
      await open.catchUp();
      const { conflicts, count, next } = await open.conflicts(cursor ?? null, limit);
      return { conflicts: conflicts.map(conflictOf), count, next };
    },
    async maker({ id, version }) {
      const last = await open.past.lastVersion(id);
      if (last?.version !== version) return null;
      const time = Math.floor(last.timeMs / 1000);
      return { time, device_id: last.device, device_name: last.deviceName };
    },
    read,
    save: (side) => transfers.save(side.name, side.size ?? 0, (signal) => read(side, signal)),
    async decide({ copy, original }, keep, name) {
      const done = await open.changes.decide({
        node: copy.id,
        version: copy.version,
        originalVersion: original?.version ?? null,
        keep,
        name: name ?? null,
      });
      if (done.isPartial) notices.fail(t().sealed.partial);
      const stands = keep === 'both' ? (name ?? copy.name) : (original ?? copy).name;
      const undo = async () => {
        const { isPartial } = await done.undo();
        if (isPartial) notices.fail(t().sealed.partial);
      };
      return { name: stands, undo };
    },
  };
}
