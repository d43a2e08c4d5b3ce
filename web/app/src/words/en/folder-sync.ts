import { pluralOf } from '../plural.ts';

const items = pluralOf('en', { one: '# item', other: '# items' });
const files = pluralOf('en', { one: '# file', other: '# files' });
const copies = pluralOf('en', {
  one: '# conflict, both kept',
  other: '# conflicts, both kept',
});

/** Folders that the browser keeps in sync. */
export const folderSync = {
  title: 'Synced folders',
  intro:
    'While this page is open, a folder of this computer and one of a workspace are kept equal, both ways. Nothing is lost: versions stay on the server, and what is removed here goes into .syncline-trash in the folder.',
  none: 'No folder is kept in sync by this browser.',
  noneHelp: 'Open the folder of a workspace that you want here, and choose “Keep in sync”.',
  workspaces: 'Workspaces',
  back: 'Back to the files',
  keep: (name: string) => `Keep “${name}” in sync`,
  pick: 'Choose a folder of this computer',
  sealedHelp:
    'The server sees neither names nor contents. In the folder of this computer the files are not encrypted. While the workspace is locked, nothing is synced.',
  lockedFirst: 'This workspace is encrypted, and locked. Unlock it first.',
  gone: 'The folder is not there any more.',
  device: 'A program of Syncline keeps this folder in sync already.',
  twice: 'This folder, one in it or one around it is kept in sync already.',
  pair: (name: string, title: string) => `${name} ↔ ${title}`,
  states: {
    elsewhere: 'Another tab keeps it in sync',
    locked: 'Locked. Goes on when you unlock the workspace.',
    permission: 'Needs your permission',
    ready: 'Ready to begin',
    working: 'Syncing …',
    watching: 'In sync, watching',
    asking: 'Waits for your decision',
    offline: 'No connection. Trying again …',
    'gone-here': 'The folder of this computer is gone. Nothing was deleted for that.',
    'gone-there': 'The folder of the workspace is gone. Nothing was deleted for that.',
    failed: 'Stopped',
    paused: 'Paused',
  },
  last: (ago: string) => `Last in sync: ${ago}`,
  never: 'Not in sync yet',
  outlook: (up: string, down: string, both: string) =>
    `${up} go up, ${down} come here, ${both} are on both sides and are compared. Where they differ, both are kept.`,
  items,
  files,
  begin: 'Begin',
  allow: 'Allow access',
  look: 'Sync now',
  pause: 'Pause',
  resume: 'Resume',
  remove: 'Stop syncing',
  removed: (name: string) => `“${name}” is not kept in sync any more. Nothing was deleted.`,
  asks: (absent: string, all: number) =>
    `${absent} of ${all} are not in the folder any more. Delete them in the workspace, too?`,
  confirm: 'Delete there, too',
  bringBack: 'Bring them back here',
  total: (up: string, down: string) => `${up} sent, ${down} received`,
  sent: (sent: string, all: string) => `${sent} on the wire for ${all}`,
  deleted: (here: number, there: number) => `${here} removed here, ${there} deleted there`,
  moved: (count: number) => `${count} moved`,
  setBack:
    'The server was set back to an older state. All was compared anew: where the two sides differ, both are kept.',
  copies,
  problems: (count: number) => `${count} not synced`,
  reasons: {
    name: 'has a name that the other side does not take',
    link: 'is a link',
    mounted: 'is a workspace of its own',
    unreadable: 'cannot be read',
    clash: 'is a file on one side and a folder on the other',
    'not-empty': 'has something in it that is not synced',
    taken: 'has a name that differs from another one in capitals only, or was just made',
    changing: 'changes again and again, or cannot be read whole, and was not sent',
    failed: 'failed',
    newer: 'is newer on the server, and was not sent',
    deleted: 'was deleted on the server, and was not sent again',
  },
  reason: (path: string, reason: string) => `${path}: ${reason}`,
  dropTitle: 'Drop the folder here',
  dropHelp:
    'This browser cannot watch folders. Drop the folder again whenever something has changed: only what is new is sent, and of large files only what has changed. Nothing comes down, and nothing is deleted. Chrome, Edge and the syncline program keep folders in sync both ways.',
  dropChoose: 'Choose the folder',
  dropOne: 'Drop one folder, and nothing beside it.',
  dropBusy: (done: number, all: string) => `${done} of ${all} looked at`,
  dropDone: (up: string, unchanged: string) => `${up} sent, ${unchanged} unchanged`,
  dropped: (name: string, title: string) => `${name} → ${title}, by dropping`,
};
