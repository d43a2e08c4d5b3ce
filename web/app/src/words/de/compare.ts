import type { Words } from '../en.ts';

/** Zwei Versionen einer Datei nebeneinander. */
export const compare: Words['compare'] = {
  action: 'Vergleichen',
  of: (name) => `Versionen von „${name}“ im Vergleich`,
  comparing: 'Wird verglichen …',
  between: (before, after) => `Von ${before} zu ${after}.`,
  same: (before, after) => `${before} und ${after} sind gleich.`,
  cut: (size) => `Verglichen sind nur die ersten ${size} von jeder.`,
  tooDifferent: 'Die beiden sind zu verschieden, um Zeile für Zeile verglichen zu werden.',
  removed: 'Entfernt: ',
  added: 'Neu: ',
  more: (rows) => `Mehr zeigen, ${rows} sind übrig`,
  folded: (lines) => `${lines} gleiche Zeilen zeigen`,
};
