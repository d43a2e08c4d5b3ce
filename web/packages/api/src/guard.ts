// What keeps the client from what a server says of encrypted workspaces: one that is known to be encrypted is so for ever, since its id is a hash
// of that. A server that calls it plain would be told what it must not know.

import { ProblemError } from './problem.ts';
import type { Workspace } from './schema.ts';

/** What is asked of an encrypted workspace: all else has to do with names and contents that a server can read. */
const OF_SEALED = ['genesis', 'log', 'objects', 'packs', 'members', 'events', 'usage'];

function isPlain(template: string): boolean {
  const [, door] = /^\/workspaces\/\{workspace\}\/(\w+)/.exec(template) ?? [];
  return door !== undefined && !OF_SEALED.includes(door);
}

export class Guard {
  constructor(
    /** Whether a workspace is known to be encrypted. */
    readonly isSealed: (workspace: string) => boolean,
  ) {}

  /** Refuses a request, before it is sent, that has to do with what only plain workspaces have. */
  check(template: string, workspace: string | undefined): void {
    if (workspace === undefined || !isPlain(template) || !this.isSealed(workspace)) return;
    throw ProblemError.here('sealed_workspace', `workspace ${workspace} is encrypted`);
  }

  /** Returns what a server says of a workspace, unless that is a lie. */
  believed(found: Workspace): Workspace {
    if (found.mode === 'sealed' || !this.isSealed(found.id)) return found;
    throw ProblemError.here('mislabelled', `workspace ${found.id} is said to be plain, and is not`);
  }
}
