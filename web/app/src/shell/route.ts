// Addresses of views. Where somebody is stands behind the `#`: that part of an address never leaves the browser, so names of files and the
// secret of a link are in no address of a page that a server or a proxy notes; what the page asks for has them.

import { ROOT, type NodePath } from '@syncline/api';

export type Route =
  | { view: 'workspaces' }
  | { view: 'account' }
  | { view: 'lab' }
  | { view: 'storage'; workspace: string | null }
  | { view: 'sync'; workspace: string | null; path: NodePath }
  | { view: 'files'; workspace: string; path: NodePath }
  | { view: 'trash'; workspace: string }
  | { view: 'conflicts'; workspace: string }
  | { view: 'activity'; workspace: string }
  | { view: 'sealed'; workspace: string; folder: string }
  | { view: 'link'; secret: string; path: NodePath }
  | { view: 'join'; secret: string }
  /** Where a code that was read stands nowhere but here. */
  | { view: 'pair'; code: string | null };

/** The id of the folder that all others are in. */
export const SEALED_ROOT = '0'.repeat(32);

/** What stands in the place of the id of a folder where the trash of an encrypted workspace is shown. */
export const SEALED_TRASH = 'trash';

/** The same where somebody decides what becomes of what two sides changed in it. */
export const SEALED_CONFLICTS = 'conflicts';

/** The same where it is shown what happened in it. */
export const SEALED_ACTIVITY = 'activity';

/** Where the own account is shown. */
export const ACCOUNT = '#/account';

/** Where the folders are that this browser keeps in sync. */
export const SYNC = '#/sync';

/** Where the methods of sending are measured. */
export const LAB = '#/lab';

/** Where an encrypted workspace is opened by the code of another device. */
export const PAIR = '#/pair';

/** Where it is shown what is stored. */
export const STORAGE = '#/storage';

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The view of an address; the workspaces for whatever is none. */
export function routeOf(hash: string): Route {
  if (hash === ACCOUNT) return { view: 'account' };
  if (hash === LAB) return { view: 'lab' };
  if (hash === STORAGE) return { view: 'storage', workspace: null };
  if (hash === SYNC) return { view: 'sync', workspace: null, path: ROOT };
  if (hash === PAIR) return { view: 'pair', code: null };
  const [, shown] = /^#\/pair\/([^/]+)$/.exec(hash) ?? [];
  if (shown !== undefined) return { view: 'pair', code: decoded(shown) };
  const [, invited] = /^#\/join\/([^/]+)$/.exec(hash) ?? [];
  if (invited !== undefined) return { view: 'join', secret: decoded(invited) };
  const [, kind, first, rest] = /^#\/([acfwsteu])\/([^/]+)(?:\/(.*))?$/.exec(hash) ?? [];
  if (first === undefined) return { view: 'workspaces' };
  const path: NodePath = rest ?? ROOT;
  if (kind === 'f') return { view: 'sync', workspace: decoded(first), path };
  if (kind === 's') return { view: 'link', secret: decoded(first), path };
  if (kind === 'e') {
    return { view: 'sealed', workspace: decoded(first), folder: rest ?? SEALED_ROOT };
  }
  if (kind === 't') return { view: 'trash', workspace: decoded(first) };
  if (kind === 'a') return { view: 'activity', workspace: decoded(first) };
  if (kind === 'u') return { view: 'storage', workspace: decoded(first) };
  if (kind === 'c') return { view: 'conflicts', workspace: decoded(first) };
  return { view: 'files', workspace: decoded(first), path };
}

function address(kind: string, first: string, path: NodePath): string {
  return `#/${kind}/${encodeURIComponent(first)}${path === ROOT ? '' : `/${path}`}`;
}

/** Where the files of a workspace are shown. */
export function addressOf(workspace: string, path: NodePath = ROOT): string {
  return address('w', workspace, path);
}

/** Where an encrypted workspace is shown: a folder of it has its id in the address, and no name. */
export function addressOfSealed(workspace: string, folder = SEALED_ROOT): string {
  return address('e', workspace, folder === SEALED_ROOT ? ROOT : folder);
}

/** Where a folder of a workspace is kept in sync with one of this computer. */
export function addressOfSync(workspace: string, path: NodePath): string {
  return address('f', workspace, path);
}

/** Where it is shown what was deleted in a workspace. */
export function addressOfTrash(workspace: string): string {
  return address('t', workspace, ROOT);
}

/** Where somebody decides what becomes of what two sides changed. */
export function addressOfConflicts(workspace: string): string {
  return address('c', workspace, ROOT);
}

/** Where it is shown what happened in a workspace. */
export function addressOfActivity(workspace: string): string {
  return address('a', workspace, ROOT);
}

/** Where it is shown what is stored of a workspace. */
export function addressOfStorage(workspace: string): string {
  return address('u', workspace, ROOT);
}

/** Where the app shows what lies behind a link. */
export function addressOfLink(secret: string, path: NodePath = ROOT): string {
  return address('s', secret, path);
}

/** The address that a QR code tells another device. */
export function addressOfPair(code: string): string {
  return `${PAIR}/${encodeURIComponent(code)}`;
}
