import { account } from './en/account.ts';
import { activity } from './en/activity.ts';
import { compare } from './en/compare.ts';
import { conflicts } from './en/conflicts.ts';
import { linkPage } from './en/link-page.ts';
import { making, recovery } from './en/making.ts';
import { sealed, sealedErrors } from './en/sealed.ts';
import { search } from './en/search.ts';
import { sharing } from './en/sharing.ts';
import { syncing } from './en/syncing.ts';
import { trash } from './en/trash.ts';
import { tray } from './en/tray.ts';
import { pluralOf } from './plural.ts';

const files = pluralOf('en', { one: '# file', other: '# files' });
const items = pluralOf('en', { one: '# item', other: '# items' });

/** All that people read, in English. Other languages have the same entries. */
export const en = {
  language: 'English',

  account,
  making,
  recovery,
  sealed,
  search,
  sharing,
  linkPage,
  activity,
  compare,
  conflicts,
  trash,
  tray,
  syncing,

  signIn: {
    title: 'Sign in',
    user: 'User',
    password: 'Password',
    code: 'Code',
    codeHelp: 'Six digits of your app, or a recovery code.',
    stay: 'Stay signed in on this browser',
    stayHelp:
      'It keeps your session, and the last version of files that you change here, until you sign out. Otherwise it forgets you when the tab is closed.',
    submit: 'Sign in',
    busy: 'Signing in …',
    ended: 'This browser was signed out. Sign in again.',
    failed: 'Not signed in.',
  },

  bar: {
    workspaces: 'Workspaces',
    help: 'Keyboard shortcuts',
    settings: 'Settings',
    signOut: 'Sign out',
    account: (name: string) => `Signed in as ${name}`,
  },

  workspaces: {
    title: 'Workspaces',
    none: 'No workspaces yet',
    yours: 'yours',
    sharedBy: (owner: string) => `shared by ${owner}`,
    mayView: 'view only',
    sealed: 'Encrypted workspace',
    used: (used: string) => `${used} stored`,
    usedOf: (used: string, quota: string) => `${used} of ${quota} stored`,
  },

  files: {
    list: (name: string) => `Files in ${name}`,
    path: 'Path',
    name: 'Name',
    size: 'Size',
    modified: 'Modified',
    loading: 'Loading …',
    empty: 'This folder is empty',
    emptyHelp: 'Drop files or folders here, or choose them.',
    emptyViewHelp: 'You may view this workspace, and not change it.',
    drop: 'Drop to upload here',
    conflict: 'Conflict',
    shared: 'Shared',
    linkTo: (target: string) => `Link to ${target}`,
    count: items,
    selected: (count: number) => `${items(count)} selected`,
    actions: 'Actions',
    upload: 'Upload files',
    uploadFolder: 'Upload folder',
    newFolder: 'New folder',
    sync: 'Keep in sync',
    open: 'Open',
    preview: 'Preview',
    download: 'Download',
    archive: 'Download as ZIP',
    rename: 'Rename',
    versions: 'Versions',
    delete: 'Delete',
    move: 'Move',
    copy: 'Copy',
    share: 'Share',
    offline: 'No live updates. Reconnecting …',
    viewOnly: 'View only',
    storage: 'Storage',
    clear: 'Clear selection',
  },

  name: {
    newFolder: 'New folder',
    rename: (name: string) => `Rename “${name}”`,
    label: 'Name',
    create: 'Create folder',
    save: 'Rename',
    cancel: 'Cancel',
    empty: 'Type a name.',
    slash: 'A name has no slash.',
    dots: 'This name has a meaning of its own. Choose another one.',
    long: 'The name is too long: 255 bytes is the limit.',
    service: 'Devices keep their own files under this name. Choose another one.',
    taken: (name: string) => `“${name}” is there already.`,
  },

  relocating: {
    title: {
      move: (count: number, name: string) => `Move ${count === 1 ? `“${name}”` : items(count)}`,
      copy: (count: number, name: string) => `Copy ${count === 1 ? `“${name}”` : items(count)}`,
    },
    verb: {
      move: (folder: string) => `Move to “${folder}”`,
      copy: (folder: string) => `Copy to “${folder}”`,
    },
    done: {
      move: (count: number, folder: string) => `${items(count)} moved to “${folder}”`,
      copy: (count: number, folder: string) => `${items(count)} copied to “${folder}”`,
    },
    up: 'Folder above',
    folders: (name: string) => `Folders in ${name}`,
    none: 'There are no folders in it.',
  },

  deleting: {
    title: (count: number) => `Delete ${items(count)}?`,
    text: 'There is too much in it for Undo. It stays in the trash, and comes back from there.',
    confirm: 'Delete',
    cancel: 'Keep',
  },

  done: {
    deleted: (count: number, name: string) =>
      count === 1 ? `“${name}” deleted` : `${items(count)} deleted`,
    renamed: (name: string) => `Renamed to “${name}”`,
    created: (name: string) => `Folder “${name}” created`,
    restored: (version: number) => `Version ${version} is the current content again`,
    undo: 'Undo',
    undone: 'Undone',
    dismiss: 'Dismiss',
    notices: 'Notices',
  },

  versions: {
    title: 'Versions',
    of: (name: string) => `Versions of “${name}”`,
    current: 'Current',
    number: (version: number) => `Version ${version}`,
    by: (device: string) => `from ${device}`,
    deleted: 'Deleted',
    download: 'Download',
    restore: 'Restore',
    restoreHelp: 'Restoring makes a new version. Nothing is lost.',
    older: 'Older versions',
    close: 'Close',
  },

  preview: {
    of: (name: string) => `Preview of “${name}”`,
    place: (at: number, all: number) => `${at} of ${all}`,
    previous: 'Previous file',
    next: 'Next file',
    close: 'Close',
    loading: (percent: number) => `Loading, ${percent} %`,
    none: 'There is no preview of this kind of file.',
    broken: 'This file cannot be shown. It may be damaged, or something else than its name says.',
    cut: (size: string) => `Only the first ${size} are shown. Download the file to see all of it.`,
    empty: 'This file is empty.',
    locked: 'This file wants a password of its own. Download it to open it.',
    page: (at: number, all: number) => `Page ${at} of ${all}`,
    firstPages: (count: number, all: number) => `The first ${count} of ${all} pages.`,
  },

  transfers: {
    title: 'Transfers',
    summary: (done: number, all: number) => `${done} of ${files(all)}`,
    waiting: 'Waiting',
    sending: (percent: number) => `${percent} %`,
    soFar: (size: string) => `${size} so far`,
    connecting: 'No connection. Trying again …',
    gathered:
      'This browser may hold all of it in memory until it is saved. Where you are asked for a place, it is not.',
    uploaded: 'Uploaded',
    sent: (sent: string, size: string) => `${sent} of ${size} sent`,
    downloaded: 'Downloaded',
    cancelled: 'Cancelled',
    clash: 'A file of this name is there already.',
    replace: 'Replace',
    keepBoth: 'Keep both',
    skip: 'Skip',
    replaceHelp: 'Replace keeps the old one as a version.',
    forAll: (count: number) => `For all ${count}:`,
    cancel: 'Cancel',
    retry: 'Retry',
    clear: 'Clear finished',
    hide: 'Hide',
    show: 'Show',
    progress: (name: string) => `Progress of ${name}`,
  },

  settings: {
    title: 'Settings',
    theme: 'Appearance',
    system: 'Like the system',
    light: 'Light',
    dark: 'Dark',
    language: 'Language',
    close: 'Close',
    lab: 'Lab: measure how files are sent',
  },

  help: {
    title: 'Keyboard shortcuts',
    close: 'Close',
    move: 'Move',
    ends: 'First, last; a page up, down',
    letters: 'Jump to a name: type it',
    cells: 'Go through the cells of a row',
    extend: 'Extend the selection',
    walk: 'Move without selecting',
    toggle: 'Select or unselect',
    all: 'Select all',
    clear: 'Clear the selection',
    open: 'Open, show or download',
    parent: 'Folder above',
    rename: 'Rename',
    delete: 'Delete',
    undo: 'Undo the last action',
    newFolder: 'New folder',
    upload: 'Upload files',
    versions: 'Versions',
    share: 'Share',
    relocate: 'Move; copy',
    help: 'This sheet',
  },

  errors: {
    ...sealedErrors,
    retry: 'Try again',
    unreachable: 'The server cannot be reached. Nothing was changed.',
    wrong_password: 'User or password is wrong.',
    wrong_code: 'The code is wrong, or was used before.',
    rate_limited: 'Too many attempts. Wait a while, then try again.',
    not_found: 'It is not there any more.',
    forbidden: 'You may view this workspace, and not change it.',
    sealed_workspace:
      'This workspace is encrypted. The server cannot read it; here it is opened from the list of workspaces.',
    mislabelled:
      'The server calls a workspace plain that this browser knows as encrypted. It was exchanged, or lies: nothing was sent to it, and nothing of what it says is shown.',
    precondition_failed:
      'Somebody else changed it meanwhile. Nothing was changed; look at it again.',
    conflict: 'It does not fit to what is there now. Nothing was changed.',
    version_dropped: 'A cleanup has removed what was in this version. Nothing was changed.',
    taken: 'Something of this name is there already. Nothing was changed.',
    too_large: 'It is too large for the server.',
    over_quota: 'The owner of the workspace has no room left.',
    no_space: 'The server has no room left.',
    too_much_work:
      'This file is stored so that the server takes too long to put it together. A device that syncs the workspace can read it.',
    object_damaged: 'The server has lost a part of this file. A device may still have it.',
    link_gone: 'This link leads nowhere any more.',
    link_locked: 'The password of the link has to be typed again.',
    unavailable: 'The server is busy. Try again soon.',
    browser_full: 'The browser has no room left for it.',
    file_changed: 'The file has changed since it was chosen, or is gone. Choose it again.',
    password: 'A password has 1 to 1024 letters.',
    memory: 'The browser has not enough memory for this.',
    unsupported: 'This browser is too old: it has no WebAssembly with vectors.',
    other: (detail: string, code: string) => `${detail} (${code})`,
    local: 'The browser could not read or write the file.',
  },
};

export type Words = typeof en;
