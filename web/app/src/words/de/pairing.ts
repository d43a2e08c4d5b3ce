import type { pairing as english } from '../en/pairing.ts';

export const pairing: typeof english = {
  title: 'Verschlüsselten Arbeitsbereich über ein anderes Gerät öffnen',
  help: 'Führen Sie „syncline pair“ in einem Ordner davon auf einem anderen Gerät aus, oder wählen Sie „Gerät hereinlassen“ in einem Browser, in dem er offen ist. Geben Sie den Code ein, den Sie dort sehen.',
  ofOther: (owner: string) =>
    `Hier kann Sie kein anderes Gerät hereinlassen. Nur Geräte von ${owner}, wem der Arbeitsbereich gehört, bekommen seine Schlüssel so; Sie öffnen ihn mit der Passphrase Ihrer Identität.`,
  code: 'Code des anderen Geräts',
  codeHelp: '28 Buchstaben und Ziffern. Groß oder klein und die Striche sind egal.',
  find: 'Weiter',
  finding: 'Das andere Gerät wird gesucht …',
  compare: (host: string) =>
    `„${host}“ lässt diesen Browser herein, wenn es dieselben Ziffern zeigt:`,
  ask: 'Um Einlass bitten',
  waiting: (host: string) =>
    `Vergleichen Sie die Ziffern auf „${host}“, und bestätigen Sie dort. Sind es andere, brechen Sie auf beiden Seiten ab.`,
  cancel: 'Abbrechen',
  back: 'Passphrase oder Wiederherstellungsschlüssel nehmen',
  toWorkspaces: 'Zu den Arbeitsbereichen',
  secret: 'Passphrase oder Wiederherstellungsschlüssel',
  secretHelp:
    'Kein Gerät behält den Schlüssel, der für ein anderes bürgt, auch dieser Browser nicht. Er wird für dieses eine Gerät geöffnet und dann überschrieben.',
  show: 'Code zeigen',
  opening: 'Schlüssel werden geöffnet …',
  carry: 'Lesen Sie das mit der Kamera des anderen Geräts, wenn es diese Adresse öffnen kann:',
  qr: 'QR-Code der Adresse mit dem Code',
  type: 'Oder geben Sie dort den Code ein: im Browser über „Über ein anderes Gerät öffnen“, oder im Terminal:',
  shownCode: 'Code',
  copy: 'Code kopieren',
  holds: (minutes: number) =>
    `Er lässt ein Gerät herein, noch ${minutes === 1 ? 'eine Minute' : `${minutes} Minuten`}, solange dieses Fenster offen ist. Wer ihn hat, liest alles: Zeigen Sie ihn niemandem.`,
  asks: (device: string) =>
    `„${device}“ bittet um Einlass. Es ist Ihres, wenn es diese Ziffern zeigt:`,
  confirm: 'Die Ziffern sind gleich: hereinlassen',
  refuse: 'Es sind andere',
  granting: (device: string) => `„${device}“ bekommt die Schlüssel …`,
  done: (device: string) => `„${device}“ ist drin.`,
  refused:
    'Niemand wurde hereingelassen. Jemand anders kennt vielleicht den Code: Er gilt nicht mehr.',
  again: 'Einen anderen Code zeigen',
  close: 'Schließen',
  errors: {
    pairing_code:
      'In diesem Code ist ein Fehler. Vergleichen Sie ihn mit dem auf dem anderen Gerät.',
    pairing_unknown:
      'Kein Gerät wartet auf diesen Code. Er ist vielleicht zu alt, benutzt, oder von einem Arbeitsbereich eines anderen Kontos.',
    pairing_used: 'Ein anderes Gerät hat diesen Code benutzt. Zeigen Sie einen neuen.',
    pairing_ended: 'Das andere Gerät ist gegangen. Niemand wurde hereingelassen.',
    pairing_expired: 'Niemand hat rechtzeitig geantwortet. Der Code gilt nicht mehr.',
    tampered:
      'Was der Server gab, ist nicht, was das andere Gerät dort abgelegt hat. Es wurde abgelehnt, und niemand wurde hereingelassen.',
  },
};
