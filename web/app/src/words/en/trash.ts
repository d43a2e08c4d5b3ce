/** What was deleted, and how it comes back. */
export const trash = {
  title: 'Trash',
  of: (workspace: string) => `Trash of ${workspace}`,
  help: 'Trash; bring back from it',
  files: 'Back to the files',
  place: 'Was in',
  when: 'Deleted',
  by: (device: string) => `by ${device}`,
  longAgo: 'long ago',
  back: 'Bring back',
  done: (name: string, folder: string) => `“${name}” is back in “${folder}”`,
  doneAll: (count: number) => `${count} items are back`,
  all: 'Show what was in deleted folders, too',
  andMore: 'and older ones',
  more: 'Show older ones',
  empty: 'Nothing is deleted',
  emptyHelp: 'What is deleted in this workspace is listed here, and comes back from here.',
};
