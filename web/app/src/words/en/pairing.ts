/** How a device is let into an encrypted workspace by another one. */
export const pairing = {
  title: 'Open an encrypted workspace by another device',
  help: 'Run “syncline pair” in a folder of it on another device, or choose “Let a device in” in a browser where it is open. Type the code that you see there.',
  ofOther: (owner: string) =>
    `Another device cannot let you in here. Only devices of ${owner}, whose workspace it is, get its keys that way; you open it with the passphrase of your identity.`,
  code: 'Code of the other device',
  codeHelp: '28 letters and digits. Upper or lower case and the dashes do not matter.',
  find: 'Go on',
  finding: 'Looking for the other device …',
  compare: (host: string) => `“${host}” lets this browser in if it shows the same digits:`,
  ask: 'Ask to be let in',
  waiting: (host: string) =>
    `Compare the digits on “${host}”, and confirm there. If they differ, cancel on both sides.`,
  cancel: 'Cancel',
  back: 'Use passphrase or recovery key',
  toWorkspaces: 'To the workspaces',
  secret: 'Passphrase or recovery key',
  secretHelp:
    'No device keeps the key that vouches for another one, this browser neither. It is opened for this one device, and overwritten then.',
  show: 'Show a code',
  opening: 'Opening the keys …',
  carry: 'Scan this with the camera of the other device, if it can open this address:',
  qr: 'QR code of the address with the code',
  type: 'Or type the code there: in a browser by “Open it by another device”, or in a terminal:',
  shownCode: 'Code',
  copy: 'Copy code',
  holds: (minutes: number) =>
    `It lets one device in, for ${minutes === 1 ? 'one more minute' : `${minutes} minutes`}, as long as this window is open. Who has it reads everything: show it to nobody.`,
  asks: (device: string) => `“${device}” asks to be let in. It is yours if it shows these digits:`,
  confirm: 'The digits are the same: let it in',
  refuse: 'They differ',
  granting: (device: string) => `“${device}” gets the keys …`,
  done: (device: string) => `“${device}” is in.`,
  refused: 'Nobody was let in. Somebody else may know the code: it is void now.',
  again: 'Show another code',
  close: 'Close',
  errors: {
    pairing_code: 'There is a slip in this code. Compare it with the one on the other device.',
    pairing_unknown:
      'No device waits for this code. It may be too old, used, or of a workspace of another account.',
    pairing_used: 'Another device has used this code. Show a new one.',
    pairing_ended: 'The other device has left. Nobody was let in.',
    pairing_expired: 'Nobody has answered in time. The code is void.',
    tampered:
      'What the server gave is not what the other device has put there. It was refused, and nobody was let in.',
  },
};
