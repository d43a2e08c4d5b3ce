// What happened in an encrypted workspace, which the browser reads from the log.

import type { Activity, ActivityChange } from '@syncline/api';
import { type SealedActivity, type SealedHappened, type SealedWorkspace } from '@syncline/core';
import type { ActivityOf } from '../activity/source.ts';
import { addressOfSealed, SEALED_TRASH } from '../shell/route.ts';
import { transfers } from '../transfers/transfers.svelte.ts';
import { codeOf } from '../words/problem.ts';
import type { Following } from './following.ts';
import { unlocked } from './unlocked.svelte.ts';
import { versionsOf } from './versions.ts';
import { listedOf, pathOf } from './view.svelte.ts';

/** Reads what things were called before, once each: it stands in older entries, which may be large, so that one is fetched after the other. */
class OldNames {
  readonly #known = new Map<string, string | null>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(readonly open: SealedWorkspace) {}

  async of({ node, oldSeq }: SealedHappened): Promise<string | null> {
    if (oldSeq === null) return null;
    const key = `${node.id} ${oldSeq}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const read = () => this.open.past.version(node.id, oldSeq);
    const reading = this.#last.then(read, read);
    this.#last = reading;
    const { name } = await reading;
    this.#known.set(key, name);
    return name;
  }
}

async function changeOf(found: SealedHappened, names: OldNames): Promise<ActivityChange> {
  const { node, nameNow, folders } = found;
  return {
    happened: found.happened as ActivityChange['happened'],
    id: node.id,
    kind: node.kind,
    name: node.name,
    old_name: await names.of(found),
    path: nameNow === null ? null : pathOf(folders, nameNow),
    size: node.size,
    version: node.version,
  };
}

async function lineOf(found: SealedActivity, names: OldNames): Promise<Activity> {
  const { seq, timeMs, device, deviceName, count, changes } = found;
  return {
    changes: await Promise.all(changes.map((change) => changeOf(change, names))),
    count,
    device_id: device,
    device_name: deviceName,
    seq,
    time: Math.floor(timeMs / 1000),
  };
}

/** `view` is what is read anew when something was changed from here. */
export function activityOf(view: () => Following, workspace: string): ActivityOf {
  const { open } = view();
  const begun = { id: workspace, open };
  const names = new OldNames(open);
  const folders = new Map<string, string | undefined>();
  const read: ActivityOf['read'] = ({ id, size }, signal) =>
    Promise.resolve(unlocked.read(begun, { file: id }, size ?? 0, signal));
  return {
    files: addressOfSealed(workspace),
    trash: addressOfSealed(workspace, SEALED_TRASH),
    async page(cursor) {
      if (cursor === undefined) await open.catchUp();
      const { activity, next } = await open.past.activity(
        cursor === undefined ? open.head + 1 : Number(cursor),
      );
      const items = await Promise.all(activity.map((found) => lineOf(found, names)));
      return { items, next: next === null ? null : String(next) };
    },
    async find({ id, path }) {
      if (path === null) return null;
      try {
        const { node, folders: above } = await open.find(id);
        folders.set(node.id, node.kind === 'folder' ? node.id : above.at(-1)?.id);
        return listedOf(node);
      } catch (error) {
        if (codeOf(error) === 'no_such') return null;
        throw error;
      }
    },
    addressOf: ({ id }) => addressOfSealed(workspace, folders.get(id)),
    read,
    save: (file) => transfers.save(file.name, file.size ?? 0, (signal) => read(file, signal)),
    versions: (file) => versionsOf(view(), workspace, file),
  };
}
