import { account } from './de/account.ts';
import { activity } from './de/activity.ts';
import { compare } from './de/compare.ts';
import { conflicts } from './de/conflicts.ts';
import { linkPage } from './de/link-page.ts';
import { making, recovery } from './de/making.ts';
import { sealed, sealedErrors } from './de/sealed.ts';
import { search } from './de/search.ts';
import { sharing } from './de/sharing.ts';
import { syncing } from './de/syncing.ts';
import { trash } from './de/trash.ts';
import { tray } from './de/tray.ts';
import type { Words } from './en.ts';
import { pluralOf } from './plural.ts';

const files = pluralOf('de', { one: '# Datei', other: '# Dateien' });
const items = pluralOf('de', { one: '# Element', other: '# Elemente' });
const ofItems = pluralOf('de', { one: '# Element', other: '# Elementen' });

export const de: Words = {
  language: 'Deutsch',

  account,
  making,
  recovery,
  sealed,
  search,
  sharing,
  linkPage,
  activity,
  compare,
  conflicts,
  trash,
  tray,
  syncing,

  signIn: {
    title: 'Anmelden',
    user: 'Benutzer',
    password: 'Passwort',
    code: 'Code',
    codeHelp: 'Sechs Ziffern Ihrer App oder ein Wiederherstellungscode.',
    stay: 'In diesem Browser angemeldet bleiben',
    stayHelp:
      'Er behält Ihre Anmeldung und die letzte Fassung von Dateien, die Sie hier ändern, bis Sie sich abmelden. Sonst vergisst er Sie, wenn der Tab geschlossen wird.',
    submit: 'Anmelden',
    busy: 'Anmeldung läuft …',
    ended: 'Dieser Browser wurde abgemeldet. Melden Sie sich neu an.',
    failed: 'Nicht angemeldet.',
  },

  bar: {
    workspaces: 'Arbeitsbereiche',
    help: 'Tastenkürzel',
    settings: 'Einstellungen',
    signOut: 'Abmelden',
    account: (name) => `Angemeldet als ${name}`,
  },

  workspaces: {
    title: 'Arbeitsbereiche',
    none: 'Noch keine Arbeitsbereiche',
    yours: 'eigener',
    sharedBy: (owner) => `geteilt von ${owner}`,
    mayView: 'nur ansehen',
    sealed: 'Verschlüsselter Arbeitsbereich',
    used: (used) => `${used} belegt`,
    usedOf: (used, quota) => `${used} von ${quota} belegt`,
  },

  files: {
    list: (name) => `Dateien in ${name}`,
    path: 'Pfad',
    name: 'Name',
    size: 'Größe',
    modified: 'Geändert',
    loading: 'Wird geladen …',
    empty: 'Dieser Ordner ist leer',
    emptyHelp: 'Ziehen Sie Dateien oder Ordner hierher oder wählen Sie welche aus.',
    emptyViewHelp: 'Sie dürfen diesen Arbeitsbereich ansehen, aber nicht ändern.',
    drop: 'Loslassen zum Hochladen',
    conflict: 'Konflikt',
    shared: 'Geteilt',
    linkTo: (target) => `Verknüpfung mit ${target}`,
    count: items,
    selected: (count) => `${items(count)} ausgewählt`,
    actions: 'Aktionen',
    upload: 'Dateien hochladen',
    uploadFolder: 'Ordner hochladen',
    newFolder: 'Neuer Ordner',
    sync: 'Im Gleichstand halten',
    open: 'Öffnen',
    preview: 'Vorschau',
    download: 'Herunterladen',
    archive: 'Als ZIP herunterladen',
    rename: 'Umbenennen',
    versions: 'Versionen',
    delete: 'Löschen',
    move: 'Verschieben',
    copy: 'Kopieren',
    share: 'Teilen',
    offline: 'Keine Live-Aktualisierung. Verbindung wird hergestellt …',
    viewOnly: 'Nur ansehen',
    storage: 'Speicher',
    clear: 'Auswahl aufheben',
  },

  name: {
    newFolder: 'Neuer Ordner',
    rename: (name) => `„${name}“ umbenennen`,
    label: 'Name',
    create: 'Ordner anlegen',
    save: 'Umbenennen',
    cancel: 'Abbrechen',
    empty: 'Geben Sie einen Namen ein.',
    slash: 'Ein Name enthält keinen Schrägstrich.',
    dots: 'Dieser Name hat eine eigene Bedeutung. Wählen Sie einen anderen.',
    long: 'Der Name ist zu lang: höchstens 255 Bytes.',
    service: 'Unter diesem Namen führen Geräte eigene Dateien. Wählen Sie einen anderen.',
    taken: (name) => `„${name}“ gibt es schon.`,
  },

  relocating: {
    title: {
      move: (count, name) => `${count === 1 ? `„${name}“` : items(count)} verschieben`,
      copy: (count, name) => `${count === 1 ? `„${name}“` : items(count)} kopieren`,
    },
    verb: {
      move: (folder) => `Nach „${folder}“ verschieben`,
      copy: (folder) => `Nach „${folder}“ kopieren`,
    },
    done: {
      move: (count, folder) => `${items(count)} nach „${folder}“ verschoben`,
      copy: (count, folder) => `${items(count)} nach „${folder}“ kopiert`,
    },
    up: 'Übergeordneter Ordner',
    folders: (name) => `Ordner in ${name}`,
    none: 'Darin sind keine Ordner.',
  },

  deleting: {
    title: (count) => `${items(count)} löschen?`,
    text: 'Für „Rückgängig“ ist es zu viel. Es bleibt im Papierkorb und kommt von dort zurück.',
    confirm: 'Löschen',
    cancel: 'Behalten',
  },

  done: {
    deleted: (count, name) => (count === 1 ? `„${name}“ gelöscht` : `${items(count)} gelöscht`),
    renamed: (name) => `In „${name}“ umbenannt`,
    created: (name) => `Ordner „${name}“ angelegt`,
    restored: (version) => `Version ${version} ist wieder der aktuelle Inhalt`,
    undo: 'Rückgängig',
    undone: 'Rückgängig gemacht',
    dismiss: 'Schließen',
    notices: 'Hinweise',
  },

  versions: {
    title: 'Versionen',
    of: (name) => `Versionen von „${name}“`,
    current: 'Aktuell',
    number: (version) => `Version ${version}`,
    by: (device) => `von ${device}`,
    deleted: 'Gelöscht',
    download: 'Herunterladen',
    restore: 'Wiederherstellen',
    restoreHelp: 'Wiederherstellen legt eine neue Version an. Nichts geht verloren.',
    older: 'Ältere Versionen',
    close: 'Schließen',
  },

  preview: {
    of: (name) => `Vorschau von „${name}“`,
    place: (at, all) => `${at} von ${all}`,
    previous: 'Vorige Datei',
    next: 'Nächste Datei',
    close: 'Schließen',
    loading: (percent) => `Wird geladen, ${percent} %`,
    none: 'Für diese Art von Datei gibt es keine Vorschau.',
    broken:
      'Diese Datei kann nicht gezeigt werden. Sie ist vielleicht beschädigt oder etwas anderes, als ihr Name sagt.',
    cut: (size) =>
      `Nur die ersten ${size} sind zu sehen. Laden Sie die Datei herunter, um alles zu sehen.`,
    empty: 'Diese Datei ist leer.',
    locked: 'Diese Datei verlangt ein eigenes Passwort. Laden Sie sie herunter, um sie zu öffnen.',
    page: (at, all) => `Seite ${at} von ${all}`,
    firstPages: (count, all) => `Die ersten ${count} von ${all} Seiten.`,
  },

  transfers: {
    title: 'Übertragungen',
    summary: (done, all) => `${done} von ${files(all)}`,
    waiting: 'Wartet',
    sending: (percent) => `${percent} %`,
    soFar: (size) => `Bisher ${size}`,
    connecting: 'Keine Verbindung. Neuer Versuch …',
    gathered:
      'Dieser Browser hält vielleicht alles im Speicher, bis es gesichert ist. Wo nach einem Ort gefragt wird, tut er das nicht.',
    uploaded: 'Hochgeladen',
    sent: (sent, size) => `${sent} von ${size} gesendet`,
    downloaded: 'Heruntergeladen',
    cancelled: 'Abgebrochen',
    clash: 'Eine Datei dieses Namens gibt es schon.',
    replace: 'Ersetzen',
    keepBoth: 'Beide behalten',
    skip: 'Auslassen',
    replaceHelp: 'Ersetzen bewahrt die alte Datei als Version.',
    forAll: (count) => `Für alle ${ofItems(count)}:`,
    cancel: 'Abbrechen',
    retry: 'Wiederholen',
    clear: 'Fertige entfernen',
    hide: 'Verbergen',
    show: 'Zeigen',
    progress: (name) => `Fortschritt von ${name}`,
  },

  settings: {
    title: 'Einstellungen',
    theme: 'Aussehen',
    system: 'Wie das System',
    light: 'Hell',
    dark: 'Dunkel',
    language: 'Sprache',
    close: 'Schließen',
    lab: 'Labor: messen, wie Dateien gesendet werden',
  },

  help: {
    title: 'Tastenkürzel',
    close: 'Schließen',
    move: 'Bewegen',
    ends: 'Erste, letzte; Seite auf, ab',
    letters: 'Zu einem Namen springen: tippen',
    cells: 'Durch die Zellen einer Zeile gehen',
    extend: 'Auswahl erweitern',
    walk: 'Bewegen, ohne auszuwählen',
    toggle: 'Auswählen oder abwählen',
    all: 'Alles auswählen',
    clear: 'Auswahl aufheben',
    open: 'Öffnen, zeigen oder herunterladen',
    parent: 'Übergeordneter Ordner',
    rename: 'Umbenennen',
    delete: 'Löschen',
    undo: 'Letzte Aktion rückgängig machen',
    newFolder: 'Neuer Ordner',
    upload: 'Dateien hochladen',
    versions: 'Versionen',
    share: 'Teilen',
    relocate: 'Verschieben; kopieren',
    help: 'Diese Übersicht',
  },

  errors: {
    ...sealedErrors,
    retry: 'Erneut versuchen',
    unreachable: 'Der Server ist nicht erreichbar. Nichts wurde geändert.',
    wrong_password: 'Benutzer oder Passwort ist falsch.',
    wrong_code: 'Der Code ist falsch oder wurde schon benutzt.',
    rate_limited: 'Zu viele Versuche. Warten Sie eine Weile.',
    not_found: 'Es ist nicht mehr da.',
    forbidden: 'Sie dürfen diesen Arbeitsbereich ansehen, aber nicht ändern.',
    sealed_workspace:
      'Dieser Arbeitsbereich ist verschlüsselt. Der Server kann ihn nicht lesen; hier öffnen Sie ihn aus der Liste der Arbeitsbereiche.',
    mislabelled:
      'Der Server nennt einen Arbeitsbereich unverschlüsselt, den dieser Browser als verschlüsselt kennt. Er wurde ausgetauscht, oder er lügt: Nichts wurde an ihn gesendet, und nichts von dem, was er sagt, wird gezeigt.',
    precondition_failed:
      'Jemand anderes hat es inzwischen geändert. Nichts wurde geändert; sehen Sie es neu an.',
    conflict: 'Es passt nicht zu dem, was jetzt da ist. Nichts wurde geändert.',
    version_dropped:
      'Eine Bereinigung hat den Inhalt dieser Version entfernt. Nichts wurde geändert.',
    taken: 'Etwas dieses Namens gibt es schon. Nichts wurde geändert.',
    too_large: 'Es ist zu groß für den Server.',
    over_quota: 'Der Eigentümer des Arbeitsbereichs hat keinen Platz mehr.',
    no_space: 'Der Server hat keinen Platz mehr.',
    too_much_work:
      'Diese Datei ist so gespeichert, dass der Server zu lange braucht, um sie zusammenzusetzen. Ein Gerät, das den Arbeitsbereich synchronisiert, kann sie lesen.',
    object_damaged:
      'Der Server hat einen Teil dieser Datei verloren. Ein Gerät hat ihn vielleicht noch.',
    link_gone: 'Dieser Link führt nirgends mehr hin.',
    link_locked: 'Das Passwort des Links muss noch einmal eingegeben werden.',
    unavailable: 'Der Server ist überlastet. Versuchen Sie es bald wieder.',
    browser_full: 'Der Browser hat dafür keinen Platz mehr.',
    file_changed:
      'Die Datei hat sich geändert, seit sie gewählt wurde, oder ist weg. Bitte noch einmal wählen.',
    password: 'Ein Passwort hat 1 bis 1024 Zeichen.',
    memory: 'Der Browser hat dafür nicht genug Speicher.',
    unsupported: 'Dieser Browser ist zu alt: ihm fehlt WebAssembly mit Vektoren.',
    other: (detail, code) => `${detail} (${code})`,
    local: 'Der Browser konnte die Datei nicht lesen oder schreiben.',
  },
};
