import type { Words } from '../en.ts';

/** Was gelöscht wurde, und wie es zurückkommt. */
export const trash: Words['trash'] = {
  title: 'Papierkorb',
  of: (workspace) => `Papierkorb von ${workspace}`,
  help: 'Papierkorb; daraus zurückholen',
  files: 'Zurück zu den Dateien',
  place: 'War in',
  when: 'Gelöscht',
  by: (device) => `von ${device}`,
  longAgo: 'vor langer Zeit',
  back: 'Zurückholen',
  done: (name, folder) => `„${name}“ ist zurück in „${folder}“`,
  doneAll: (count) => `${count} Elemente sind zurück`,
  all: 'Auch zeigen, was in gelöschten Ordnern war',
  andMore: 'und ältere',
  more: 'Ältere zeigen',
  empty: 'Nichts ist gelöscht',
  emptyHelp: 'Was in diesem Arbeitsbereich gelöscht wird, steht hier und kommt von hier zurück.',
};
