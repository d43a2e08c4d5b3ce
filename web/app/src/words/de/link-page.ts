import type { Words } from '../en.ts';

/** Was sieht, wer einem Link folgt. */
export const linkPage: Words['linkPage'] = {
  title: 'Mit Ihnen geteilt',
  folder: 'Geteilter Ordner',
  loading: 'Wird geladen …',
  goneTitle: 'Dieser Link führt nirgends hin',
  gone: 'Er wurde zurückgenommen, ist abgelaufen oder so oft benutzt worden, wie er darf. Bitten Sie um einen neuen, wo Sie ihn herhaben.',
  lockedTitle: 'Dieser Link hat ein Passwort',
  locked: 'Von wem Sie den Link haben, der kennt es.',
  password: 'Passwort',
  unlock: 'Öffnen',
  wrong: 'Das ist nicht das Passwort.',
  again: 'Das Passwort muss noch einmal eingegeben werden.',
  until: (moment) => `Verfügbar bis ${moment}`,
  download: 'Herunterladen',
  archive: 'Alles als ZIP herunterladen',
  folderArchive: 'Ordner als ZIP herunterladen',
  empty: 'Dieser Ordner ist leer',
  about: 'Gesendet mit Syncline. Sie brauchen kein Konto.',
};
