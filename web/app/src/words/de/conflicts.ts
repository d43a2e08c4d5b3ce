import type { Words } from '../en.ts';
import { pluralOf } from '../plural.ts';

const waiting = pluralOf('de', {
  one: '# Konflikt zu entscheiden',
  other: '# Konflikte zu entscheiden',
});

/** Was zwei Seiten geändert haben, und was davon bleibt. */
export const conflicts: Words['conflicts'] = {
  title: 'Konflikte',
  of: (workspace) => `Konflikte von ${workspace}`,
  help: 'Konflikte: was zwei Seiten geändert haben',
  waiting,
  intro:
    'Zwei Seiten haben dieselbe Datei geändert, darum wurden beide Fassungen behalten. Was Sie nicht behalten, bleibt in den Fassungen oder im Papierkorb.',
  files: 'Zurück zu den Dateien',
  inFolder: (folder) => `in „${folder}“`,
  original: 'Die Datei',
  copy: 'Daneben behalten',
  gone: 'Die Datei, neben der sie behalten wurde, ist gelöscht.',
  by: (device) => `von ${device}`,
  byYou: (device) => `von Ihnen, an ${device}`,
  show: 'Vorschau',
  keep: 'Diese behalten',
  both: 'Beide behalten',
  bothAs: 'Beide behalten, diese als',
  save: 'Beide behalten',
  cancel: 'Abbrechen',
  about: (what, name) => `${what}: ${name}`,
  kept: (name) => `„${name}“ bleibt. Die andere Fassung kann zurückgeholt werden.`,
  keptBoth: (name) => `Beide bleiben, eine als „${name}“`,
  again: (name) => `„${name}“ ist wieder ein Konflikt`,
  more: 'Ältere zeigen',
  empty: 'Keine Konflikte',
  emptyHelp:
    'Wo zwei Seiten dieselbe Datei gleichzeitig ändern, bleiben beide Fassungen, und Sie wählen hier.',
};
