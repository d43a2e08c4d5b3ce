import { pluralOf } from '../plural.ts';

/** What happened in a workspace. */
export const activity = {
  title: 'Activity',
  of: (workspace: string) => `Activity in ${workspace}`,
  help: 'Activity: what happened, and by whom',
  files: 'Back to the files',
  you: (device: string) => `You, on ${device}`,
  happened: {
    made: 'Added',
    changed: 'Changed',
    renamed: 'Renamed',
    moved: 'Moved',
    deleted: 'Deleted',
    restored: 'Brought back',
    kept_beside: 'Kept beside, in conflict',
    decided: 'Conflict decided',
  },
  was: (name: string) => `was “${name}”`,
  others: pluralOf('en', { one: 'and # other change', other: 'and # other changes' }),
  inTrash: 'In the trash',
  today: 'Today',
  yesterday: 'Yesterday',
  more: 'Show older',
  empty: 'Nothing has happened yet',
  emptyHelp:
    'What is added, changed, moved or deleted in this workspace is told here, with who did it.',
};
