/** Making a workspace, and the first steps in one. */
export const making = {
  open: 'New workspace',
  title: 'New workspace',
  label: 'Name of the workspace',
  create: 'Create workspace',
  who: 'Who can read it',
  readable: 'You, and the server with whoever runs it. Links and folders as WebDAV need that.',
  encrypted: 'Encrypted',
  unreadable:
    'Only you and whom you let in. The server can read neither names nor contents. Who loses both the passphrase and the recovery key loses the files: nobody can give them back.',
  passphrase: 'Passphrase',
  again: 'The same again',
  passphraseHelp:
    'It opens the workspace on each of your devices. It is not your password, stays in this browser, and is never sent.',
  short: (length: number) =>
    `A passphrase has at least ${length} characters: whoever gets hold of the server can try as long as they like.`,
  differ: 'The passphrases differ.',
  device: 'A folder of a device becomes a workspace, too. There, run:',
  first: 'Name your first workspace. Your files come next.',
  made: (name: string) => `Workspace “${name}” created`,
  fill: (name: string) => `“${name}” is ready`,
  fillHelp: 'Drop files or folders here, or choose them.',
  files: 'Choose files',
  folder: 'Choose a folder',
  later: 'Open it empty',
  plain: 'Not encrypted',
  control: 'A name has neither a slash nor a line break.',
  long: 'The name is too long: 128 bytes is the limit.',
  taken: (name: string) => `You have a workspace “${name}” already.`,
};

/** The recovery key of an encrypted workspace that was made here. */
export const recovery = {
  title: (name: string) => `Keep the recovery key of “${name}”`,
  why: 'It opens the workspace when the passphrase is forgotten, and nobody can make another one. Write it down or print it, and keep it away from this computer.',
  key: 'Recovery key',
  copy: 'Copy',
  save: 'Save as a file',
  print: 'Print',
  paper: (name: string) => `Recovery key of the encrypted workspace “${name}”`,
  file: (name: string) => `Recovery key of ${name}`,
  lost: 'It is shown here once. If this page goes away, the passphrase opens the workspace all the same, and “syncline key show-recovery” on a device shows the key again.',
  kept: 'I have kept it',
  open: 'Open the workspace',
};
