import type { sealed as english, sealedErrors as englishErrors } from '../en/sealed.ts';

export const sealed: typeof english = {
  locked: 'Verschlüsselter Arbeitsbereich',
  lockedHelp:
    'Der Server kann ihn nicht lesen. Öffnen Sie ihn mit Passphrase oder Wiederherstellungsschlüssel.',
  ofOthers: 'Mit Ihnen geteilt. Nur eines Ihrer Geräte kann ihn öffnen.',
  secret: 'Passphrase oder Wiederherstellungsschlüssel',
  secretHelp:
    'Bleibt in diesem Browser, nur im Arbeitsspeicher, und wird nie gesendet. Wer sie hat, liest alles.',
  unlock: 'Entsperren',
  unlocking: 'Wird entsperrt …',
  reading: (entries: string) => `${entries} Änderungen geprüft …`,
  lock: 'Jetzt sperren',
  autoLock: (minutes: number) => `Sperrt sich nach ${minutes} Minuten ohne Benutzung`,
  readOnly: 'Hier nur lesbar',
  empty: 'Dieser Ordner ist leer',
  emptyHelp: 'Dateien kommen von Ihren Geräten hinein.',
  refused: (count: number) =>
    `${count === 1 ? 'Eine Änderung stammt' : `${count} Änderungen stammen`} von niemandem, der schreiben darf. Sie zählen nicht.`,
  shown: 'Was der Server sieht',
  shownHelp:
    'Gezählt aus dem Protokoll und den Paketen, wie dieser Server sie hat. Er sieht keine Namen, keine Inhalte, keine Zeiten von Dateien, keine genauen Größen, und nicht, was in welchem Ordner liegt.',
  commits: 'Wie oft etwas geändert wurde, und wann das ankam',
  changes: 'Einzelne Änderungen',
  deletions: 'davon Löschungen',
  nodes: 'Dateien, Ordner und Links, die es je gab',
  devices: 'Geräte, die etwas geändert haben',
  packs: 'Pakete',
  bytes: 'Darin gespeichert, mit Füllung',
  ranges: 'Er sieht auch, dass Sie gerade lesen, und welche Teile welcher Pakete.',
  close: 'Schließen',
};

export const sealedErrors: typeof englishErrors = {
  wrong_key:
    'Diese Passphrase oder dieser Wiederherstellungsschlüssel öffnet den Arbeitsbereich nicht.',
  key_cost:
    'Der Server gab gesperrte Schlüssel, die nicht sein dürfen. Es wurde nichts damit versucht.',
  unknown_epoch: 'Der Arbeitsbereich hat neue Schlüssel. Sperren und entsperren Sie ihn erneut.',
  not_next:
    'Die Geschichte des Servers passt nicht zusammen: etwas wurde geändert oder ausgelassen. Ab dort wird nichts gezeigt.',
  forked:
    'Der Server hat Ihren Geräten verschiedene Geschichten gezeigt. Ab dort wird nichts gezeigt.',
  older_history:
    'Der Server zeigt eine ältere Geschichte, als dieser Browser schon gelesen hat: er hat etwas verloren oder hält es zurück. Nichts davon wird gezeigt.',
  missing: 'Ein Teil dieser Datei fehlt auf dem Server. Ein Gerät hat ihn vielleicht noch.',
  tampered:
    'Was der Server gab, ist nicht, was Ihre Geräte gespeichert haben. Es wurde zurückgewiesen.',
  message: 'Der Server gab etwas, das nicht lesbar ist. Es wurde zurückgewiesen.',
  wrong_workspace: 'Der Server gab einen anderen Arbeitsbereich. Er wurde zurückgewiesen.',
  locked: 'Der Arbeitsbereich wurde gesperrt. Entsperren Sie ihn, um fortzufahren.',
  no_such: 'Es ist nicht mehr da.',
  chunk_hash:
    'Was der Server gab, ist nicht, was Ihre Geräte gespeichert haben. Es wurde zurückgewiesen.',
};
