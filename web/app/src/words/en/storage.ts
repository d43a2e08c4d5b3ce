/** What is stored: by kinds of files, how much is saved, and what came on which day. It comes with its page. */
export const storage = {
  title: 'Storage',
  of: (workspace: string) => `Storage of ${workspace}`,
  all: 'All workspaces',
  table: 'Show as table',

  yours: 'Your quota',
  noQuota: 'There is no limit.',
  left: (size: string) => `${size} are left.`,
  full: 'It is full. Nothing more can be stored before something is deleted for good.',
  byWorkspace: 'By workspace',
  workspace: 'Workspace',
  othersHelp: 'What others have shared with you counts towards their quota.',

  byKind: 'Files by kind',
  byKindHelp: 'As people have them, by the endings of their names.',
  kind: 'Kind',
  files: 'Files',
  size: 'Size',
  kinds: {
    image: 'Pictures',
    video: 'Videos',
    audio: 'Audio',
    document: 'Documents',
    archive: 'Archives',
    text: 'Text and code',
    other: 'Other',
  },
  deleted: 'Trash',

  saving: 'What deduplication and compression save',
  saved: (percent: string) => `What is kept takes ${percent} less than the files and the trash.`,
  notSaved: 'Old versions take more than is saved.',
  step: 'Counted as',
  logical: 'Files and trash',
  pieces: 'Each piece once, old versions too',
  kept: 'Compressed',
  stored: 'With the history: counts for the quota',
  piecesUnknown: 'The server has not looked into all that it stores, so pieces are not counted.',

  byDay: 'New data by day',
  byDayHelp: 'What was stored anew on each of the last 30 days (UTC), after deduplication.',
  day: 'Day',
  since: (day: string) => `Of days before ${day} not all is known.`,
  noDays: 'Nothing new was stored in the last 30 days.',

  traffic: 'Traffic of this browser',
  trafficHelp:
    'What it has sent and received for you by day (UTC) since you signed in here: contents of requests and answers, without headers and the app itself. Other devices do not count.',
  sent: 'Sent',
  received: 'Received',

  empty: 'Nothing is stored yet',
  emptyHelp: 'Upload some files, and here is shown what they are and what they take.',
  sealed:
    'This workspace is encrypted. The server sees how much is stored, but not how many files there are, or of what kind.',
};
