// The versions of a file in an encrypted workspace, which the browser reads from the log.

import type { Node } from '@syncline/api';
import type { SealedVersion } from '@syncline/core';
import { transfers } from '../transfers/transfers.svelte.ts';
import type { Listed, VersionsOf } from '../versions/versions.ts';
import type { Following } from './following.ts';
import { unlocked } from './unlocked.svelte.ts';

function listedOf(found: SealedVersion): Listed {
  const { version, seq, timeMs, deviceName: device, size, isDeleted, isDropped } = found;
  const time = Math.floor(timeMs / 1000);
  return { version, seq, time, device, size, isDeleted, isDropped };
}

export function versionsOf(view: Following, workspace: string, { id, name }: Node): VersionsOf {
  const { open } = view;
  const begun = { id: workspace, open };
  const read = ({ seq, size }: Listed, signal: AbortSignal) =>
    Promise.resolve(unlocked.read(begun, { file: id, seq }, size ?? 0, signal));
  return {
    async list(after, signal) {
      const { versions, next } = await open.past.versions(id, after, signal);
      return { versions: versions.map(listedOf), next };
    },
    read,
    save: (version) => transfers.save(name, version.size ?? 0, (signal) => read(version, signal)),
    async restore({ seq }) {
      await open.changes.revert(id, seq);
      await view.refresh();
    },
  };
}
