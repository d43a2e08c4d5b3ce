import type { Words } from '../en.ts';
import { pluralOf } from '../plural.ts';

/** Dateien und Ordner, am Namen gefunden. */
export const search: Words['search'] = {
  title: 'Suchen',
  of: (workspace) => (workspace === '' ? 'Suchen' : `In ${workspace} suchen`),
  label: 'Name einer Datei oder eines Ordners',
  help: 'Alle Wörter müssen im Namen stehen. Groß- und Kleinschreibung und Akzente sind egal.',
  busy: 'Wird gesucht …',
  results: 'Gefunden',
  found: pluralOf('de', { one: '# gefunden', other: '# gefunden' }),
  andMore: 'und es gibt mehr',
  none: (query, workspace) => `Nichts in ${workspace} heißt „${query}“.`,
  more: 'Mehr zeigen',
  shortcut: 'Am Namen suchen',
};
