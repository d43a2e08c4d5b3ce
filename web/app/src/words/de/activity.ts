import type { Words } from '../en.ts';
import { pluralOf } from '../plural.ts';

/** Was in einem Arbeitsbereich geschehen ist. */
export const activity: Words['activity'] = {
  title: 'Aktivität',
  of: (workspace) => `Aktivität in ${workspace}`,
  help: 'Aktivität: was geschehen ist, und durch wen',
  files: 'Zurück zu den Dateien',
  you: (device) => `Sie, an ${device}`,
  happened: {
    made: 'Hinzugefügt',
    changed: 'Geändert',
    renamed: 'Umbenannt',
    moved: 'Verschoben',
    deleted: 'Gelöscht',
    restored: 'Zurückgeholt',
    kept_beside: 'Daneben behalten, im Konflikt',
    decided: 'Konflikt entschieden',
  },
  was: (name) => `war „${name}“`,
  others: pluralOf('de', { one: 'und # weitere Änderung', other: 'und # weitere Änderungen' }),
  inTrash: 'Im Papierkorb',
  today: 'Heute',
  yesterday: 'Gestern',
  more: 'Ältere zeigen',
  empty: 'Noch ist nichts geschehen',
  emptyHelp:
    'Was in diesem Arbeitsbereich hinzukommt, geändert, verschoben oder gelöscht wird, steht hier, mit dem Gerät, das es war.',
};
