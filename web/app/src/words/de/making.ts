import type { Words } from '../en.ts';

/** Arbeitsbereiche anlegen, und die ersten Schritte darin. */
export const making: Words['making'] = {
  open: 'Neuer Arbeitsbereich',
  title: 'Neuer Arbeitsbereich',
  label: 'Name des Arbeitsbereichs',
  create: 'Arbeitsbereich anlegen',
  who: 'Wer ihn lesen kann',
  readable: 'Sie, und der Server samt dem, der ihn betreibt. Links und WebDAV-Ordner brauchen das.',
  encrypted: 'Verschlüsselt',
  unreadable:
    'Nur Sie und wen Sie einlassen. Der Server kann weder Namen noch Inhalte lesen. Wer Passphrase und Wiederherstellungsschlüssel verliert, verliert die Dateien: Niemand kann sie zurückgeben.',
  passphrase: 'Passphrase',
  again: 'Noch einmal dieselbe',
  passphraseHelp:
    'Sie öffnet den Arbeitsbereich auf jedem Ihrer Geräte. Sie ist nicht Ihr Passwort, bleibt in diesem Browser und wird nie gesendet.',
  short: (length) =>
    `Eine Passphrase hat mindestens ${length} Zeichen: Wer an den Server kommt, kann beliebig lange probieren.`,
  differ: 'Die Passphrasen sind verschieden.',
  device: 'Auch ein Ordner auf einem Gerät wird zum Arbeitsbereich. Dort ausführen:',
  first: 'Geben Sie Ihrem ersten Arbeitsbereich einen Namen. Danach kommen Ihre Dateien.',
  made: (name) => `Arbeitsbereich „${name}“ angelegt`,
  fill: (name) => `„${name}“ ist bereit`,
  fillHelp: 'Ziehen Sie Dateien oder Ordner hierher oder wählen Sie welche aus.',
  files: 'Dateien auswählen',
  folder: 'Ordner auswählen',
  later: 'Leer öffnen',
  plain: 'Nicht verschlüsselt',
  control: 'Ein Name enthält weder Schrägstrich noch Zeilenumbruch.',
  long: 'Der Name ist zu lang: höchstens 128 Bytes.',
  taken: (name) => `Sie haben schon einen Arbeitsbereich „${name}“.`,
};

/** Der Wiederherstellungsschlüssel eines verschlüsselten Arbeitsbereichs, der hier angelegt wurde. */
export const recovery: Words['recovery'] = {
  title: (name) => `Bewahren Sie den Wiederherstellungsschlüssel von „${name}“ auf`,
  why: 'Er öffnet den Arbeitsbereich, wenn die Passphrase vergessen ist, und niemand kann einen anderen machen. Schreiben Sie ihn ab oder drucken Sie ihn, und bewahren Sie ihn nicht bei diesem Computer auf.',
  key: 'Wiederherstellungsschlüssel',
  copy: 'Kopieren',
  save: 'Als Datei speichern',
  print: 'Drucken',
  paper: (name) => `Wiederherstellungsschlüssel des verschlüsselten Arbeitsbereichs „${name}“`,
  file: (name) => `Wiederherstellungsschlüssel von ${name}`,
  lost: 'Er wird hier einmal gezeigt. Geht diese Seite verloren, öffnet die Passphrase den Arbeitsbereich trotzdem, und „syncline key show-recovery“ auf einem Gerät zeigt den Schlüssel noch einmal.',
  kept: 'Ich habe ihn aufbewahrt',
  open: 'Arbeitsbereich öffnen',
};
