import { pluralOf } from '../plural.ts';

/** Files and folders found by their names. */
export const search = {
  title: 'Search',
  of: (workspace: string) => (workspace === '' ? 'Search' : `Search in ${workspace}`),
  label: 'Name of a file or folder',
  help: 'All words have to be in the name. Upper case and accents do not matter.',
  busy: 'Searching …',
  results: 'What was found',
  found: pluralOf('en', { one: '# found', other: '# found' }),
  andMore: 'and there are more',
  none: (query: string, workspace: string) => `Nothing in ${workspace} is called “${query}”.`,
  more: 'Show more',
  shortcut: 'Search by name',
};
