/** Encrypted workspaces, opened in the browser. */
export const sealed = {
  locked: 'Encrypted workspace',
  lockedHelp: 'The server cannot read it. Open it with its passphrase or recovery key.',
  ofOthers: 'Shared with you. The server cannot read it.',
  lockedOfOther: (owner: string) =>
    `${owner} shares it with you, and the server cannot read it. Open it with the passphrase of your identity.`,
  compare: (owner: string) =>
    `Ask ${owner} for the id of the workspace, by another way than this server. A server that lies could show one of its own.`,
  compared: (owner: string) => `${owner} has told me this id`,
  identitySecret: 'Passphrase of your identity',
  identitySecretHelp:
    'You have chosen it for “syncline key fingerprint”. It stays in this browser, in memory only, and is never sent.',
  mayView: 'You may look at it, and not change it.',
  secret: 'Passphrase or recovery key',
  secretHelp:
    'It stays in this browser, in memory only, and is never sent. Who has it reads everything.',
  unlock: 'Unlock',
  byDevice: 'Open it by another device',
  unlocking: 'Unlocking …',
  reading: (entries: string) => `${entries} changes checked …`,
  lock: 'Lock now',
  letIn: 'Let a device in',
  autoLock: (minutes: number) => `Locks after ${minutes} minutes without use`,
  empty: 'This folder is empty',
  emptyHelp: 'Drop files here, or take them from one of your devices.',
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
  ranges: 'It also sees that you are reading or writing now, and which parts of which packs.',
  app: 'The app itself',
  appHelp:
    'Your browser decrypts with an app that this server sends. Its fingerprint is the same wherever the app is: “syncline admin web-app” tells it of a program that you trust. A server that wants to deceive you could show you another one here.',
  appCheck: 'Show the fingerprint of the app',
  appChecking: 'All files of the app are compared …',
  appWhole: (files: number) => `All ${files} files are what the fingerprint stands for.`,
  appWrong: 'These are not what the fingerprint stands for. Do not type a passphrase here:',
  appUnread:
    'The server does not tell what the app consists of, or does not send all of it. It may have been given a new one a moment ago: reload the page.',
  appInsecure: 'Its fingerprint can be shown over HTTPS only.',
  wasSetBack: 'The server was set back from a backup: show what it has now',
  close: 'Close',
  uploads: 'Files on their way',
  waiting: 'Waiting',
  going: (done: string, size: string) => `${done} of ${size}`,
  sent: (size: string) => `Done, ${size} sent`,
  sentOf: (sent: string, size: string) => `Done, ${sent} of ${size} sent`,
  unfinished: (size: string) =>
    `${size} of files that were on their way are stored. Choose the files again, and only the rest is sent.`,
  giveUp: 'Forget them',
  beside: 'Somebody else changed it at the same moment. Yours lies beside it.',
  cancelled: 'Cancelled',
  replace: 'Replace',
  keepBoth: 'Keep both',
  cancel: 'Cancel',
  clear: 'Clear what is over',
  backPartly:
    'Not all of it is back as it was: something else has a name by now, or a cleanup has removed a content.',
  dropped: 'content removed by a cleanup',
  partial:
    'Others have changed something at the same moment. It was let be, or has another name; nothing was lost.',
};

/** What can be wrong with an encrypted workspace, by the codes of the core. */
export const sealedErrors = {
  passphrase: 'A passphrase has at least 8 characters.',
  wrong_key: 'This passphrase or recovery key does not open the workspace.',
  key_cost: 'The server gave locked keys that may not be. Nothing was tried with them.',
  no_identity:
    'You have no identity yet. Run “syncline key fingerprint” on a device, and tell the owner what it shows.',
  identity_changed:
    'The server tells others of another identity than it gives to you. It was exchanged there; nothing was opened.',
  no_envelope:
    'There are no keys of the workspace for you: its owner has not given them yet, or has taken them back.',
  not_for_us:
    'The keys at the server are not for you: the owner has not sealed them to your identity.',
  read_only: 'The owner lets you look at it only. Nothing was changed.',
  unknown_epoch:
    'The workspace has new keys. Lock it and unlock it again; where somebody else shares it, the owner has to give them to you first.',
  not_next:
    'The server’s history does not fit together: something in it was changed or left out. Nothing of it is shown from there on.',
  forked:
    'The server has shown different histories to your devices. Nothing is shown from there on.',
  older_history:
    'The server shows an older history than this browser has read before: it has lost something, or keeps it back. Nothing of it is shown.',
  other_history:
    'The server shows another history than this browser has read before. Nothing of it is shown. Do not trust this server; your devices have everything that they had.',
  unreadable: (path: string, why: string) =>
    `“${path}” could not be read, so nothing was saved. ${why}`,
  too_much_to_archive:
    'A ZIP file takes up to 100,000 files and folders, and there are more in this one.',
  missing: 'A part of this file is missing at the server. A device may still have it.',
  tampered: 'What the server gave is not what your devices have stored. It was refused.',
  message: 'The server gave something that cannot be read. It was refused.',
  wrong_workspace: 'The server gave another workspace. It was refused.',
  locked: 'The workspace was locked. Unlock it to go on.',
  no_such: 'It is not there any more.',
  changed: 'Somebody else changed it meanwhile. Nothing was changed; look at it again.',
  name: 'The name, or the path with it, cannot be.',
  mounted: 'It belongs to a workspace of its own, and is changed there.',
  into_itself: 'A folder cannot go into itself.',
  dropped: 'A cleanup has removed its content. It cannot come back.',
  not_kept:
    'The server said that it has taken the change, and it is not in the history. Do not trust this server; your devices have everything that they had.',
  void: 'Your devices would not believe this change, so it counts for nothing. Lock the workspace and unlock it again.',
  fenced: 'A cleanup or new keys came in between again and again. Try again.',
  busy: 'Others were faster again and again. Try again.',
  history_lost:
    'The server has an older history than this page has seen; it was put back. Nothing was changed. Let a device sync, then unlock the workspace again.',
  pack_missing: 'The server has lost something of it on the way. Try again.',
  chunk_hash: 'What the server gave is not what your devices have stored. It was refused.',
};
