/** Ein Konto anlegen, mit einer Einladung. */
export const join = {
  title: 'Konto anlegen',
  invited: 'Sie wurden auf diesen Server eingeladen.',
  room: (size: string) => `Ihr Konto hat Platz für ${size}.`,
  name: 'Benutzer',
  nameHelp:
    'Damit melden Sie sich an, und damit geben andere Ihnen etwas frei. Er bleibt, wie er ist.',
  nameEmpty: 'Ein Name fehlt.',
  nameStart: 'Ein Name beginnt weder mit einem Punkt noch mit einem Bindestrich.',
  nameSigns: 'Ein Name hat nur Buchstaben von a bis z, Ziffern und . _ - @ +.',
  nameLong: 'Der Name ist zu lang: 64 Zeichen sind die Grenze.',
  taken: (name: string) => `„${name}“ gibt es hier schon. Wählen Sie einen anderen Namen.`,
  password: 'Passwort',
  again: 'Passwort, noch einmal',
  show: 'Passwort zeigen',
  differ: 'Die beiden Passwörter sind verschieden.',
  passwordHelp:
    'Es bleibt in diesem Browser: Der Server sieht, dass Sie es kennen, und nie das Passwort. Niemand kann es Ihnen noch einmal sagen.',
  advice: {
    short: 'Zu kurz: Es hat 8 Zeichen oder mehr. Vier Wörter, die niemand erwartet, sind gut.',
    long: 'Zu lang: 1.024 Zeichen sind die Grenze.',
    common: 'Das versuchen alle zuerst. Wählen Sie ein anderes.',
    simple: 'Leicht zu raten: immer dieselben Zeichen, oder eine Reihe der Tastatur.',
    longer: 'Das geht. Länger ist besser: ein paar Zeichen mehr, oder noch ein Wort.',
    good: 'Eine gute Länge.',
  },
  submit: 'Konto anlegen',
  busy: 'Konto wird angelegt …',
  failed: 'Es wurde kein Konto angelegt.',
  lost: 'Die Verbindung brach ab, bevor die Antwort kam. Vielleicht gibt es Ihr Konto schon. Versuchen Sie es noch einmal: Wenn ja, sind Sie angemeldet.',
  gone: {
    invitation_unknown: 'Diese Einladung gibt es nicht. Ist die Adresse vollständig?',
    invitation_expired: 'Diese Einladung ist abgelaufen. Bitten Sie um eine neue.',
    invitation_used:
      'Mit dieser Einladung wurde schon ein Konto angelegt; sie gilt einmal. Waren Sie es, melden Sie sich an. Wenn nicht, sagen Sie es dem, der Sie eingeladen hat.',
    invitation_taken_back:
      'Diese Einladung wurde zurückgenommen. Fragen Sie den, der Sie eingeladen hat.',
  },
  goneTitle: 'Diese Einladung gilt nicht',
  toSignIn: 'Zur Anmeldung',
  here: (name: string) => `Dieser Browser ist als ${name} angemeldet.`,
  leave: 'Abmelden und ein Konto anlegen',
  stay: 'Zu Ihren Arbeitsbereichen',
};
