import type { Words } from '../en.ts';
import { pluralOf } from '../plural.ts';

const unfinished = pluralOf('de', {
  one: '# Datei wurde nicht fertig.',
  other: '# Dateien wurden nicht fertig.',
});

/** Wie Übertragungen angehalten werden, wie lange sie dauern, und wie sie weitergehen, wenn die Seite weg war. */
export const tray: Words['tray'] = {
  pause: 'Anhalten',
  resume: 'Fortsetzen',
  pauseAll: 'Alle anhalten',
  resumeAll: 'Alle fortsetzen',
  retryAll: 'Alle noch einmal versuchen',
  unreadable: (name, more) =>
    `Nicht lesbar und nicht gesendet: ${name}${more > 0 ? ` und ${more} weitere` : ''}`,
  paused: 'Angehalten',
  pausedAt: (percent) => `Angehalten bei ${percent} %`,
  speed: (size) => `${size} pro Sekunde`,
  left: (time) => `noch etwa ${time}`,
  unfinished,
  reachable: 'Sie gehen dort weiter, wo sie abbrachen.',
  pickHelp: 'Wählen Sie sie noch einmal: sie gehen dort weiter, wo sie abbrachen.',
  more: (count) => `und ${count} weitere`,
  others: 'Das ist keine davon: sie werden an Name, Größe und Zeit erkannt.',
  goOn: 'Weitermachen',
  pick: 'Dateien wählen',
  pickFolder: 'Ihren Ordner wählen',
  giveUp: 'Aufgeben',
};
