import type { Words } from '../en.ts';
import { pluralOf } from '../plural.ts';

const others = pluralOf('de', {
  one: '# anderes wurde abgemeldet',
  other: '# andere wurden abgemeldet',
});
const codes = pluralOf('de', {
  one: '# Wiederherstellungscode ist übrig',
  other: '# Wiederherstellungscodes sind übrig',
});

/** Das eigene Konto: Geräte, Passwort, zweiter Faktor, Token für Programme. */
export const account: Words['account'] = {
  title: 'Konto',
  of: (name) => `Konto von ${name}`,
  devices: 'Geräte',
  devicesHelp: 'Alles, was an Ihrem Konto angemeldet ist. Was Sie nicht kennen, melden Sie ab.',
  thisDevice: 'Dieser Browser',
  seen: (ago) => `zuletzt gesehen ${ago}`,
  inSync: (ago) => `zuletzt auf dem Stand ${ago}`,
  rename: 'Umbenennen',
  nameOf: (name) => `Neuer Name von ${name}`,
  save: 'Speichern',
  cancel: 'Abbrechen',
  renamed: (name) => `Das Gerät heißt jetzt „${name}“`,
  signOut: 'Abmelden',
  signOutTitle: (name) => `„${name}“ abmelden?`,
  signOutText:
    'Es braucht Ihr Passwort, um wiederzukommen. Was auf seiner Platte liegt, bleibt dort; es erhält nichts mehr.',
  signedOut: (name) => `„${name}“ wurde abgemeldet`,
  password: 'Passwort',
  current: 'Jetziges Passwort',
  next: 'Neues Passwort',
  show: 'Passwörter zeigen',
  endOthers: 'Alle anderen Geräte abmelden und alle Token für Programme beenden',
  change: 'Passwort ändern',
  changed: 'Das Passwort wurde geändert',
  changedOthers: (count) => `Das Passwort wurde geändert; ${others(count)}`,
  wrongPassword: 'Das ist nicht Ihr jetziges Passwort.',
  noPassword: 'Dieses Konto hat kein Passwort: Ein Anbieter meldet Sie an.',
  factor: 'Zweiter Faktor',
  factorOff: 'Zum Anmelden genügt Ihr Passwort.',
  factorOn: (since, left) =>
    `Zum Anmelden gehört seit ${since} auch ein Code Ihrer App; ${codes(left)}.`,
  turnOn: 'Einschalten',
  turnOff: 'Ausschalten',
  ownPassword: 'Ihr Passwort',
  begin: 'Weiter',
  secretHelp:
    'Geben Sie dieses Geheimnis in Ihre App ein, oder öffnen Sie es dort. Geben Sie dann den Code ein, den sie zeigt.',
  secret: 'Geheimnis',
  copySecret: 'Geheimnis kopieren',
  openApp: 'In einer App auf diesem Gerät öffnen',
  code: 'Code',
  offHelp: 'Sechs Ziffern Ihrer App oder ein Wiederherstellungscode.',
  recovery: 'Wiederherstellungscodes',
  recoveryHelp:
    'Bewahren Sie sie nicht auf dem Telefon auf. Jeder lässt Sie einmal ohne die App herein, und sie werden nur dieses Mal gezeigt.',
  copyCodes: 'Codes kopieren',
  kept: 'Ich habe sie aufbewahrt',
  turnedOn: 'Der zweite Faktor ist eingeschaltet',
  codesLost:
    'Der zweite Faktor ist eingeschaltet, aber die Antwort mit den Wiederherstellungscodes ging verloren. Schalten Sie ihn mit einem Code Ihrer App aus und wieder ein.',
  turnedOff: 'Der zweite Faktor ist ausgeschaltet',
  tokens: 'Token für Programme',
  tokensHelp:
    'Mit einem Token liest oder schreibt ein anderes Programm Dateien ohne Ihr Passwort, über WebDAV oder HTTP.',
  noTokens: 'Noch keine Token.',
  newToken: 'Neues Token',
  tokenName: 'Wofür es ist',
  scope: 'Es darf',
  read: 'lesen',
  write: 'lesen und schreiben',
  workspace: 'Wo',
  everywhere: 'alle Arbeitsbereiche',
  ends: 'Es endet',
  inDays: (days) => `in ${days} Tagen`,
  never: 'nie',
  make: 'Token anlegen',
  tokenOnce: 'Kopieren Sie das Token jetzt: Es wird nur dieses Mal gezeigt.',
  token: 'Token',
  copyToken: 'Token kopieren',
  done: 'Fertig',
  used: (ago) => `zuletzt benutzt ${ago}`,
  until: (moment) => `bis ${moment}`,
  revoke: 'Widerrufen',
  revoked: (name) => `Das Token „${name}“ gilt nicht mehr`,
  copied: 'Kopiert',
  notCopied:
    'Der Browser lässt Seiten hier nicht kopieren. Der Text ist ausgewählt: Drücken Sie Strg+C.',
};
