import type { storage as english } from '../en/storage.ts';

export const storage: typeof english = {
  title: 'Speicher',
  of: (workspace) => `Speicher von ${workspace}`,
  all: 'Alle Arbeitsbereiche',
  table: 'Als Tabelle zeigen',

  yours: 'Ihr Kontingent',
  noQuota: 'Es gibt keine Grenze.',
  left: (size) => `${size} sind frei.`,
  full: 'Es ist voll. Mehr kann erst gespeichert werden, wenn etwas endgültig gelöscht ist.',
  byWorkspace: 'Nach Arbeitsbereich',
  workspace: 'Arbeitsbereich',
  othersHelp: 'Was andere mit Ihnen geteilt haben, zählt zu deren Kontingent.',

  byKind: 'Dateien nach Art',
  byKindHelp: 'So, wie Menschen sie haben, nach den Endungen ihrer Namen.',
  kind: 'Art',
  files: 'Dateien',
  size: 'Größe',
  kinds: {
    image: 'Bilder',
    video: 'Filme',
    audio: 'Ton',
    document: 'Dokumente',
    archive: 'Archive',
    text: 'Text und Quelltext',
    other: 'Anderes',
  },
  deleted: 'Papierkorb',

  saving: 'Was Deduplizierung und Kompression sparen',
  saved: (percent) =>
    `Was aufbewahrt wird, braucht ${percent} weniger als die Dateien und der Papierkorb.`,
  notSaved: 'Alte Versionen brauchen mehr, als gespart wird.',
  step: 'Gezählt als',
  logical: 'Dateien und Papierkorb',
  pieces: 'Jedes Stück einmal, auch alter Versionen',
  kept: 'Komprimiert',
  stored: 'Mit dem Verlauf: zählt zum Kontingent',
  piecesUnknown:
    'Der Server hat nicht in alles gesehen, was er speichert; darum sind Stücke nicht gezählt.',

  byDay: 'Neue Daten nach Tag',
  byDayHelp:
    'Was an jedem der letzten 30 Tage (UTC) neu gespeichert wurde, nach der Deduplizierung.',
  day: 'Tag',
  since: (day) => `Von Tagen vor dem ${day} ist nicht alles bekannt.`,
  noDays: 'In den letzten 30 Tagen wurde nichts Neues gespeichert.',

  traffic: 'Verkehr dieses Browsers',
  trafficHelp:
    'Was er für Sie pro Tag (UTC) gesendet und empfangen hat, seit Sie hier angemeldet sind: Inhalte von Anfragen und Antworten, ohne Kopfzeilen und die App selbst. Andere Geräte zählen nicht.',
  sent: 'Gesendet',
  received: 'Empfangen',

  empty: 'Noch ist nichts gespeichert',
  emptyHelp: 'Laden Sie Dateien hoch, und hier steht, was sie sind und wie viel sie brauchen.',
  sealed:
    'Dieser Arbeitsbereich ist verschlüsselt. Der Server sieht, wie viel gespeichert ist, aber nicht, wie viele Dateien es sind und von welcher Art.',
};
