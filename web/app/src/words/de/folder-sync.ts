import type { folderSync as english } from '../en/folder-sync.ts';
import { pluralOf } from '../plural.ts';

const items = pluralOf('de', { one: '# Element', other: '# Elemente' });
const files = pluralOf('de', { one: '# Datei', other: '# Dateien' });
const copies = pluralOf('de', {
  one: '# Konflikt, beides ist da',
  other: '# Konflikte, beides ist da',
});

/** Ordner, die der Browser im Gleichstand hält. */
export const folderSync: typeof english = {
  title: 'Ordner im Gleichstand',
  intro:
    'Solange diese Seite offen ist, bleiben ein Ordner dieses Rechners und einer eines Arbeitsbereichs gleich, in beide Richtungen. Nichts geht verloren: Versionen bleiben auf dem Server, und was hier entfernt wird, kommt nach .syncline-trash im Ordner.',
  none: 'Dieser Browser hält keinen Ordner im Gleichstand.',
  noneHelp:
    'Öffnen Sie den Ordner eines Arbeitsbereichs, den Sie hier haben wollen, und wählen Sie „Im Gleichstand halten“.',
  workspaces: 'Arbeitsbereiche',
  back: 'Zurück zu den Dateien',
  keep: (name) => `„${name}“ im Gleichstand halten`,
  pick: 'Ordner dieses Rechners auswählen',
  sealedHelp:
    'Der Server sieht weder Namen noch Inhalte. Im Ordner dieses Rechners sind die Dateien nicht verschlüsselt. Solange der Arbeitsbereich gesperrt ist, wird nichts abgeglichen.',
  lockedFirst: 'Dieser Arbeitsbereich ist verschlüsselt und gesperrt. Entsperren Sie ihn zuerst.',
  gone: 'Der Ordner ist nicht mehr da.',
  device: 'Ein Programm von Syncline hält diesen Ordner schon im Gleichstand.',
  twice: 'Dieser Ordner, einer darin oder einer darum ist schon im Gleichstand.',
  pair: (name, title) => `${name} ↔ ${title}`,
  states: {
    elsewhere: 'Ein anderer Tab hält ihn im Gleichstand',
    locked: 'Gesperrt. Es geht weiter, wenn Sie den Arbeitsbereich entsperren.',
    permission: 'Braucht Ihre Erlaubnis',
    ready: 'Bereit',
    working: 'Gleicht ab …',
    watching: 'Im Gleichstand, wird beobachtet',
    asking: 'Wartet auf Ihre Entscheidung',
    offline: 'Keine Verbindung. Neuer Versuch …',
    'gone-here': 'Der Ordner dieses Rechners ist weg. Deswegen wurde nichts gelöscht.',
    'gone-there': 'Der Ordner des Arbeitsbereichs ist weg. Deswegen wurde nichts gelöscht.',
    failed: 'Angehalten',
    paused: 'Pausiert',
  },
  last: (ago) => `Zuletzt im Gleichstand: ${ago}`,
  never: 'Noch nicht im Gleichstand',
  outlook: (up, down, both) =>
    `${up} gehen hinauf, ${down} kommen hierher, ${both} gibt es auf beiden Seiten, und sie werden verglichen. Wo sie sich unterscheiden, bleibt beides.`,
  items,
  files,
  begin: 'Beginnen',
  allow: 'Zugriff erlauben',
  look: 'Jetzt abgleichen',
  pause: 'Pausieren',
  resume: 'Fortsetzen',
  remove: 'Nicht mehr abgleichen',
  removed: (name) => `„${name}“ bleibt nicht mehr im Gleichstand. Nichts wurde gelöscht.`,
  asks: (absent, all) =>
    `${absent} von ${all} sind nicht mehr im Ordner. Auch im Arbeitsbereich löschen?`,
  confirm: 'Auch dort löschen',
  bringBack: 'Hierher zurückholen',
  total: (up, down) => `${up} gesendet, ${down} empfangen`,
  sent: (sent, all) => `${sent} übertragen für ${all}`,
  deleted: (here, there) => `${here} hier entfernt, ${there} dort gelöscht`,
  moved: (count: number) => `${count} verschoben`,
  setBack:
    'Der Server wurde auf einen älteren Stand zurückgesetzt. Alles wurde neu verglichen: Wo sich beide Seiten unterscheiden, bleibt beides.',
  copies,
  problems: (count) => `${count} nicht abgeglichen`,
  reasons: {
    name: 'hat einen Namen, den die andere Seite nicht nimmt',
    link: 'ist eine Verknüpfung',
    mounted: 'ist ein eigener Arbeitsbereich',
    unreadable: 'ist nicht lesbar',
    clash: 'ist auf einer Seite eine Datei und auf der anderen ein Ordner',
    'not-empty': 'enthält etwas, das nicht abgeglichen wird',
    taken: 'unterscheidet sich nur in Großbuchstaben von einem anderen Namen oder ist ganz neu',
    changing: 'ändert sich immer wieder oder ist nicht ganz lesbar und wurde nicht gesendet',
    failed: 'ist fehlgeschlagen',
    newer: 'ist auf dem Server neuer und wurde nicht gesendet',
    deleted: 'wurde auf dem Server gelöscht und nicht wieder gesendet',
  },
  reason: (path, reason) => `${path}: ${reason}`,
  dropTitle: 'Ordner hier ablegen',
  dropHelp:
    'Dieser Browser kann Ordner nicht beobachten. Legen Sie den Ordner wieder hier ab, wenn sich etwas geändert hat: Nur Neues wird gesendet, von großen Dateien nur das Geänderte. Nichts kommt herunter, und nichts wird gelöscht. Chrome, Edge und das Programm syncline halten Ordner in beide Richtungen im Gleichstand.',
  dropChoose: 'Ordner auswählen',
  dropOne: 'Legen Sie einen einzigen Ordner ab und nichts daneben.',
  dropBusy: (done, all) => `${done} von ${all} angesehen`,
  dropDone: (up, unchanged) => `${up} gesendet, ${unchanged} unverändert`,
  dropped: (name, title) => `${name} → ${title}, durch Ablegen`,
};
