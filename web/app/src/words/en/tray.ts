import { pluralOf } from '../plural.ts';

const unfinished = pluralOf('en', {
  one: '# file was not finished.',
  other: '# files were not finished.',
});

/** How transfers are paused, how long they take, and how they go on after the page went away. */
export const tray = {
  pause: 'Pause',
  resume: 'Resume',
  pauseAll: 'Pause all',
  resumeAll: 'Resume all',
  retryAll: 'Try all again',
  unreadable: (name: string, more: number) =>
    `Cannot be read, and not sent: ${name}${more > 0 ? ` and ${more} more` : ''}`,
  paused: 'Paused',
  pausedAt: (percent: number) => `Paused at ${percent} %`,
  speed: (size: string) => `${size} a second`,
  left: (time: string) => `about ${time} left`,
  unfinished,
  reachable: 'They go on where they were cut off.',
  pickHelp: 'Pick them again, and they go on where they were cut off.',
  more: (count: number) => `and ${count} more`,
  others: 'This is none of them: they are told apart by name, size and time.',
  goOn: 'Go on',
  pick: 'Pick the files',
  pickFolder: 'Pick their folder',
  giveUp: 'Give them up',
};
