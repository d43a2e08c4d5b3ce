/** Encrypted workspaces, opened for reading. */
export const sealed = {
  locked: 'Encrypted workspace',
  lockedHelp: 'The server cannot read it. Open it with its passphrase or recovery key.',
  ofOthers: 'Shared with you. Only a device of yours can open it.',
  secret: 'Passphrase or recovery key',
  secretHelp:
    'It stays in this browser, in memory only, and is never sent. Who has it reads everything.',
  unlock: 'Unlock',
  unlocking: 'Unlocking …',
  reading: (entries: string) => `${entries} changes checked …`,
  lock: 'Lock now',
  autoLock: (minutes: number) => `Locks after ${minutes} minutes without use`,
  readOnly: 'Read only here',
  empty: 'This folder is empty',
  emptyHelp: 'Files come into it from your devices.',
  refused: (count: number) =>
    `${count === 1 ? 'One change was' : `${count} changes were`} made by nobody who may write. They are left out.`,
  shown: 'What the server can see',
  shownHelp:
    'Counted from the log and the packs, as this server has them. It does not see names, contents, times of files, exact sizes, or what lies in which folder.',
  commits: 'Times something was changed, and when it came in',
  changes: 'Single changes',
  deletions: 'of them deletions',
  nodes: 'Files, folders and links that there ever were',
  devices: 'Devices that have changed something',
  packs: 'Packs',
  bytes: 'Stored in them, padding included',
  ranges: 'It also sees that you are reading now, and which parts of which packs.',
  close: 'Close',
};

/** What can be wrong with an encrypted workspace, by the codes of the core. */
export const sealedErrors = {
  wrong_key: 'This passphrase or recovery key does not open the workspace.',
  key_cost: 'The server gave locked keys that may not be. Nothing was tried with them.',
  unknown_epoch: 'The workspace has new keys. Lock it and unlock it again.',
  not_next:
    'The server’s history does not fit together: something in it was changed or left out. Nothing of it is shown from there on.',
  forked:
    'The server has shown different histories to your devices. Nothing is shown from there on.',
  older_history:
    'The server shows an older history than this browser has read before: it has lost something, or keeps it back. Nothing of it is shown.',
  missing: 'A part of this file is missing at the server. A device may still have it.',
  tampered: 'What the server gave is not what your devices have stored. It was refused.',
  message: 'The server gave something that cannot be read. It was refused.',
  wrong_workspace: 'The server gave another workspace. It was refused.',
  locked: 'The workspace was locked. Unlock it to go on.',
  no_such: 'It is not there any more.',
  chunk_hash: 'What the server gave is not what your devices have stored. It was refused.',
};
