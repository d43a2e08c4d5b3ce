import type { Workspace } from '@syncline/api';

/** The server knows no name of an encrypted workspace: its id stands in its place. */
export function isSealed({ id, name }: Pick<Workspace, 'id' | 'name'>): boolean {
  return id === name;
}
