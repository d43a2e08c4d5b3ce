import { pluralOf } from '../plural.ts';

const waiting = pluralOf('en', {
  one: '# conflict to decide',
  other: '# conflicts to decide',
});

/** What two sides changed, and what is to be kept of it. */
export const conflicts = {
  title: 'Conflicts',
  of: (workspace: string) => `Conflicts of ${workspace}`,
  help: 'Conflicts: what two sides changed',
  waiting,
  intro:
    'Two sides changed the same file, so both versions were kept. What you do not keep stays among the versions or in the trash.',
  files: 'Back to the files',
  inFolder: (folder: string) => `in “${folder}”`,
  original: 'The file',
  copy: 'Kept beside it',
  gone: 'The file that it was kept beside is deleted.',
  by: (device: string) => `by ${device}`,
  byYou: (device: string) => `by you, on ${device}`,
  show: 'Preview',
  keep: 'Keep this one',
  both: 'Keep both',
  bothAs: 'Keep both, this one as',
  save: 'Keep both',
  cancel: 'Cancel',
  about: (what: string, name: string) => `${what}: ${name}`,
  kept: (name: string) => `“${name}” is kept. The other version can be brought back.`,
  keptBoth: (name: string) => `Both are kept, one as “${name}”`,
  again: (name: string) => `“${name}” is a conflict again`,
  more: 'Show older ones',
  empty: 'No conflicts',
  emptyHelp:
    'Where two sides change the same file at the same time, both versions are kept, and you choose here.',
};
