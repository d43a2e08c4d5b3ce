import type { sealed as english, sealedErrors as englishErrors } from '../en/sealed.ts';

export const sealed: typeof english = {
  locked: 'Verschlüsselter Arbeitsbereich',
  lockedHelp:
    'Der Server kann ihn nicht lesen. Öffnen Sie ihn mit Passphrase oder Wiederherstellungsschlüssel.',
  ofOthers: 'Mit Ihnen geteilt. Der Server kann ihn nicht lesen.',
  lockedOfOther: (owner: string) =>
    `${owner} teilt ihn mit Ihnen, und der Server kann ihn nicht lesen. Öffnen Sie ihn mit der Passphrase Ihrer Identität.`,
  compare: (owner: string) =>
    `Fragen Sie ${owner} nach der Kennung des Arbeitsbereichs, auf anderem Weg als über diesen Server. Ein Server, der lügt, könnte einen eigenen zeigen.`,
  compared: (owner: string) => `${owner} hat mir diese Kennung genannt`,
  identitySecret: 'Passphrase Ihrer Identität',
  identitySecretHelp:
    'Sie haben sie für „syncline key fingerprint“ gewählt. Sie bleibt in diesem Browser, nur im Arbeitsspeicher, und wird nie gesendet.',
  mayView: 'Sie dürfen ihn ansehen, und nicht ändern.',
  secret: 'Passphrase oder Wiederherstellungsschlüssel',
  secretHelp:
    'Bleibt in diesem Browser, nur im Arbeitsspeicher, und wird nie gesendet. Wer sie hat, liest alles.',
  unlock: 'Entsperren',
  byDevice: 'Über ein anderes Gerät öffnen',
  unlocking: 'Wird entsperrt …',
  reading: (entries: string) => `${entries} Änderungen geprüft …`,
  lock: 'Jetzt sperren',
  letIn: 'Gerät hereinlassen',
  autoLock: (minutes: number) => `Sperrt sich nach ${minutes} Minuten ohne Benutzung`,
  empty: 'Dieser Ordner ist leer',
  emptyHelp: 'Legen Sie Dateien hier ab, oder nehmen Sie sie von einem Ihrer Geräte.',
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
  ranges: 'Er sieht auch, dass Sie gerade lesen oder schreiben, und welche Teile welcher Pakete.',
  app: 'Die App selbst',
  appHelp:
    'Ihr Browser entschlüsselt mit einer App, die dieser Server sendet. Ihr Fingerabdruck ist überall derselbe: „syncline admin web-app“ nennt den eines Programms, dem Sie trauen. Ein Server, der Sie täuschen will, könnte Ihnen hier einen anderen zeigen.',
  appCheck: 'Fingerabdruck der App zeigen',
  appChecking: 'Alle Dateien der App werden verglichen …',
  appWhole: (files: number) => `Alle ${files} Dateien sind, wofür der Fingerabdruck steht.`,
  appWrong: 'Diese sind nicht, wofür der Fingerabdruck steht. Geben Sie hier keine Passphrase ein:',
  appUnread:
    'Der Server sagt nicht, woraus die App besteht, oder sendet nicht alles. Vielleicht hat er gerade eine neue bekommen: Laden Sie die Seite neu.',
  appInsecure: 'Ihr Fingerabdruck lässt sich nur über HTTPS zeigen.',
  wasSetBack: 'Der Server wurde aus einer Sicherung zurückgesetzt: zeigen, was er jetzt hat',
  close: 'Schließen',
  uploads: 'Dateien unterwegs',
  waiting: 'Wartet',
  going: (done: string, size: string) => `${done} von ${size}`,
  sent: (size: string) => `Fertig, ${size} gesendet`,
  sentOf: (sent: string, size: string) => `Fertig, ${sent} von ${size} gesendet`,
  unfinished: (size) =>
    `${size} von Dateien, die unterwegs waren, sind gespeichert. Wählen Sie die Dateien noch einmal, dann wird nur der Rest gesendet.`,
  giveUp: 'Vergessen',
  beside: 'Jemand hat sie im selben Moment geändert. Ihre liegt daneben.',
  cancelled: 'Abgebrochen',
  replace: 'Ersetzen',
  keepBoth: 'Beide behalten',
  cancel: 'Abbrechen',
  clear: 'Erledigtes ausblenden',
  backPartly:
    'Nicht alles ist wieder, wie es war: Etwas anderes hat inzwischen einen Namen, oder ein Aufräumen hat einen Inhalt entfernt.',
  dropped: 'Inhalt durch Aufräumen entfernt',
  partial:
    'Andere haben im selben Moment etwas geändert. Es blieb, wie es ist, oder heißt anders; verloren ist nichts.',
};

export const sealedErrors: typeof englishErrors = {
  passphrase: 'Eine Passphrase hat mindestens 8 Zeichen.',
  wrong_key:
    'Diese Passphrase oder dieser Wiederherstellungsschlüssel öffnet den Arbeitsbereich nicht.',
  key_cost:
    'Der Server gab gesperrte Schlüssel, die nicht sein dürfen. Es wurde nichts damit versucht.',
  no_identity:
    'Sie haben noch keine Identität. Führen Sie „syncline key fingerprint“ auf einem Gerät aus, und sagen Sie dem Besitzer, was es zeigt.',
  identity_changed:
    'Der Server nennt anderen eine andere Identität, als er Ihnen gibt. Sie wurde dort ausgetauscht; es wurde nichts geöffnet.',
  no_envelope:
    'Es gibt für Sie keine Schlüssel des Arbeitsbereichs: der Besitzer hat sie noch nicht gegeben, oder zurückgenommen.',
  not_for_us:
    'Die Schlüssel auf dem Server sind nicht für Sie: der Besitzer hat sie nicht an Ihre Identität versiegelt.',
  read_only: 'Der Besitzer lässt Sie ihn nur ansehen. Es wurde nichts geändert.',
  unknown_epoch:
    'Der Arbeitsbereich hat neue Schlüssel. Sperren und entsperren Sie ihn erneut; teilt ihn jemand mit Ihnen, muss der Besitzer sie Ihnen erst geben.',
  not_next:
    'Die Geschichte des Servers passt nicht zusammen: etwas wurde geändert oder ausgelassen. Ab dort wird nichts gezeigt.',
  forked:
    'Der Server hat Ihren Geräten verschiedene Geschichten gezeigt. Ab dort wird nichts gezeigt.',
  older_history:
    'Der Server zeigt eine ältere Geschichte, als dieser Browser schon gelesen hat: er hat etwas verloren oder hält es zurück. Nichts davon wird gezeigt.',
  other_history:
    'Der Server zeigt eine andere Geschichte, als dieser Browser schon gelesen hat. Nichts davon wird gezeigt. Vertrauen Sie diesem Server nicht; Ihre Geräte haben alles, was sie hatten.',
  unreadable: (path: string, why: string) =>
    `„${path}“ ließ sich nicht lesen, darum wurde nichts gespeichert. ${why}`,
  too_much_to_archive:
    'Eine ZIP-Datei nimmt bis zu 100.000 Dateien und Ordner auf, und in diesem Ordner sind mehr.',
  missing: 'Ein Teil dieser Datei fehlt auf dem Server. Ein Gerät hat ihn vielleicht noch.',
  tampered:
    'Was der Server gab, ist nicht, was Ihre Geräte gespeichert haben. Es wurde zurückgewiesen.',
  message: 'Der Server gab etwas, das nicht lesbar ist. Es wurde zurückgewiesen.',
  wrong_workspace: 'Der Server gab einen anderen Arbeitsbereich. Er wurde zurückgewiesen.',
  locked: 'Der Arbeitsbereich wurde gesperrt. Entsperren Sie ihn, um fortzufahren.',
  no_such: 'Es ist nicht mehr da.',
  changed: 'Jemand hat es inzwischen geändert. Es wurde nichts geändert; sehen Sie es neu an.',
  name: 'Der Name, oder der Pfad mit ihm, darf nicht sein.',
  mounted: 'Es gehört zu einem eigenen Arbeitsbereich und wird dort geändert.',
  into_itself: 'Ein Ordner kann nicht in sich selbst liegen.',
  dropped: 'Ein Aufräumen hat den Inhalt entfernt. Es kann nicht zurückkommen.',
  not_kept:
    'Der Server sagte, er habe die Änderung angenommen, und sie steht nicht in der Geschichte. Trauen Sie diesem Server nicht; Ihre Geräte haben alles, was sie hatten.',
  void: 'Ihre Geräte würden dieser Änderung nicht glauben, also zählt sie nicht. Sperren und entsperren Sie den Arbeitsbereich erneut.',
  fenced:
    'Eine Bereinigung oder neue Schlüssel kamen immer wieder dazwischen. Versuchen Sie es erneut.',
  busy: 'Andere waren immer wieder schneller. Versuchen Sie es erneut.',
  history_lost:
    'Der Server hat eine ältere Geschichte, als diese Seite gesehen hat; er wurde zurückgesetzt. Es wurde nichts geändert. Lassen Sie ein Gerät abgleichen und entsperren Sie den Arbeitsbereich dann erneut.',
  pack_missing: 'Der Server hat unterwegs etwas davon verloren. Versuchen Sie es erneut.',
  chunk_hash:
    'Was der Server gab, ist nicht, was Ihre Geräte gespeichert haben. Es wurde zurückgewiesen.',
};
