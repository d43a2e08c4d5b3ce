import type { Words } from '../en.ts';

/** Arbeitsbereiche anlegen, und die ersten Schritte darin. */
export const making: Words['making'] = {
  open: 'Neuer Arbeitsbereich',
  title: 'Neuer Arbeitsbereich',
  label: 'Name des Arbeitsbereichs',
  create: 'Arbeitsbereich anlegen',
  readable:
    'Er ist nicht verschlüsselt: Der Server, und wer ihn betreibt, kann lesen, was darin liegt.',
  sealed: 'Einen verschlüsselten, den nur Ihre Geräte lesen können, legt nur ein Gerät an:',
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
