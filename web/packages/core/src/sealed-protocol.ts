// What a page and its worker say to each other about a sealed workspace.

import type {
  SealedActivity,
  SealedConflicts,
  SealedDecision,
  SealedDeleted,
  SealedPlace,
  SealedVersion,
} from './sealed-told.ts';

export type * from './sealed-told.ts';

/** A file, folder or link of a sealed workspace. */
export interface SealedNode {
  /** Its id; the server knows it, too, and it says nothing. */
  id: string;
  name: string;
  kind: 'folder' | 'file' | 'link';
  /** Its length in bytes, where it is a file. */
  size: number | null;
  /** When it was modified, in milliseconds since 1970. */
  modifiedMs: number;
  version: number;
  isConflict: boolean;
}

/** A file, folder or link, and where it is. */
export interface SealedPlaced {
  node: SealedNode;
  /** The folder that it is in. */
  folder: string;
  /** Whether its name is a text, as names of files here are. */
  isText: boolean;
  /** Whether it is a workspace of its own: what lies in it is not told. */
  isMounted: boolean;
}

/** What was found by its name. */
export interface SealedHit extends SealedNode {
  /** What of the name matches, in UTF-16 code units, in order and apart. */
  marks: { start: number; end: number }[];
  /** The folders above, the topmost first. */
  folders: SealedNode[];
}

/** Some of what was found, the best first. */
export interface SealedFound {
  hits: SealedHit[];
  /** Where the search goes on; nothing at its end. */
  next: string | null;
}

/** What opens a workspace: the locked keys of one's own, or what the owner of another one has sealed to this account. */
export type SealedKeys =
  | { generation: number; keys: Uint8Array }
  | {
      identity: { public: Uint8Array; locked: Uint8Array };
      envelope: Uint8Array;
      /** The generation of the newest keys that were seen, or 0. */
      seen: number;
    };

/** A workspace that was made. */
export interface SealedMade {
  id: string;
  /** Encoded, as a server takes it. */
  genesis: Uint8Array<ArrayBuffer>;
  /** Locked, as a server keeps them. */
  keys: Uint8Array<ArrayBuffer>;
  generation: number;
  /** What a person writes down. */
  recoveryKey: string;
}

/** A part of a pack that is wanted: of the entry in which it travelled, where that is given. */
export interface SealedPart {
  pack: string;
  start: number;
  end: number;
  inlineSeq: number | null;
}

/** What the log of a sealed workspace shows to whoever has no keys. */
export interface SealedShown {
  commits: number;
  changes: number;
  deletions: number;
  nodes: number;
  devices: number;
  packs: number;
  packBytes: number;
  /** Entries that counted for nothing, since nobody who may has made them. */
  voidEntries: number;
}

/** An entry that was fetched again: which one is wanted, and the frame in which the server has sent one. */
export interface SealedEntry {
  seq: number;
  frame: Uint8Array;
}

/** What can be read of a file now, and what is wanted next. */
export interface SealedStep {
  bytes: Uint8Array<ArrayBuffer>;
  isOver: boolean;
  wanted: SealedPart[];
  /** What was given, whose memory is free again. */
  spent: Uint8Array<ArrayBuffer>[];
}

/** A change of a sealed workspace that is one commit, or a few. */
export type SealedChange =
  | { kind: 'folder'; folder: string; name: string }
  | { kind: 'remove'; nodes: { id: string; version: number }[] }
  /** Moves what somebody has seen in these versions into a folder, under these names. */
  | { kind: 'move'; nodes: { id: string; version: number; name: string }[]; folder: string }
  /** Copies nodes into a folder, each with all that is in it, under these names. */
  | { kind: 'copy'; nodes: { id: string; name: string }[]; folder: string }
  /** Deletes what somebody has seen in this version, if nothing is in it. */
  | { kind: 'removeOne'; node: string; version: number }
  /** Marks what somebody has seen as a copy that was kept beside another file, made from this version of that. */
  | { kind: 'mark'; node: string; version: number; original: string; base: number }
  /** Brings back what was deleted, of a folder what was deleted with it, too. */
  | { kind: 'bringBack'; nodes: string[] }
  /** Makes a file again what it was in the version that an entry has brought. */
  | { kind: 'revert'; node: string; entry: SealedEntry }
  /** Decides about a conflict. */
  | ({ kind: 'decide' } & SealedDecision)
  /** Takes a removal, a move, a copy or a decision back, by its number. */
  | { kind: 'restore'; deed: number };

/** Packs that were stored for files which are in no commit yet, and up to when they count. */
export interface SealedKept {
  mark: string;
  packs: {
    id: string;
    length: number;
    /** The size of the file and when it was modified: what is chosen again is the same by that. */
    of: string;
  }[];
}

/** A pack that is to be stored. */
export interface SealedPack {
  id: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** The sketch of a file that was put, by which its next version is sent as what has changed. */
export interface SealedSketch {
  /** By which it is found: what has the same content has the same one. */
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** A file that is to be put. */
export interface SealedPut {
  folder: string;
  name: string;
  /** The version that somebody has seen; nothing where none is there. */
  over: { id: string; version: number } | null;
  /** Whether it is kept beside that where somebody changes it at the same moment. */
  isBeside: boolean;
  file: File;
}

/** What became of a change. */
export interface SealedDone {
  isOver: boolean;
  /** What it was about: the folder that was made, what was moved, the file that was put. */
  node: string | null;
  /** Which version that has by it, whatever became of it since. */
  version: number | null;
  /** Whether a file lies beside the one that somebody else has changed at the same moment. */
  isBeside: boolean;
  /** Whether something was let be, or has another name, because of what others have done at the same moment. */
  isPartial: boolean;
}

/** What can be called of the sealed workspace that is open, or opens one. */
export interface SealedCalls {
  /** Unlocks a sealed workspace. */
  sealedOpen: {
    ask: {
      id: string;
      genesis: Uint8Array;
      kept: SealedKeys;
      secret: string;
      device: string;
      deviceName: string;
      seed: Uint8Array;
    };
    /** Its name, and of which generation the keys of somebody else's are. */
    answer: { name: string; generation: number };
  };
  /** Makes the keys of a new workspace; nobody has it yet. */
  sealedMake: {
    ask: { name: string; passphrase: string; createdMs: number };
    answer: SealedMade;
  };
  /** Opens the workspace that was made, once; it is like one that was unlocked then. */
  sealedMade: { ask: { device: string; deviceName: string }; answer: { name: string } };
  /** Takes newer keys of somebody else's workspace, and says whether they are newer. */
  sealedRenew: {
    ask: { envelope: Uint8Array };
    answer: { isNewer: boolean; generation: number };
  };
  /** Checks and folds entries; says how many there were, which was the last of all, and whether what is written behind it counts. */
  sealedFold: {
    ask: { frame: Uint8Array };
    answer: { count: number; head: number; mayWrite: boolean };
  };
  /** Up to which entry the log is folded. */
  sealedHead: { ask: null; answer: number };
  /** The hash of an entry that is folded, in hexadecimal digits. */
  sealedHash: { ask: { seq: number }; answer: string | null };
  sealedList: { ask: { folder: string }; answer: SealedNode[] };
  /** All that is in a folder and in those below it, each after its folder. */
  sealedListAll: { ask: { folder: string }; answer: SealedPlaced[] };
  /** Begins to compare a file with a version; returns by which number. */
  sealedCompare: { ask: { node: string; version: number; file: Blob }; answer: number };
  /** Goes on with it, and says whether they are equal; nothing where it is not known yet. */
  sealedCompareOn: { ask: { comparison: number }; answer: boolean | null };
  sealedCompareEnd: { ask: { comparison: number }; answer: null };
  sealedWay: { ask: { folder: string }; answer: SealedNode[] };
  sealedSearch: {
    ask: { query: string; after: string | null; limit: number };
    answer: SealedFound;
  };
  sealedShown: { ask: null; answer: SealedShown };
  sealedDeleted: { ask: null; answer: SealedDeleted[] };
  /** Conflicts that nobody has decided, behind the `next` of an answer before. */
  sealedConflicts: { ask: { after: string | null; limit: number }; answer: SealedConflicts };
  /** What the entries of a frame did that are older than one, and the last of them; nothing where there was none. */
  sealedActivity: {
    ask: { frame: Uint8Array; since: number; before: number };
    answer: { activity: SealedActivity[]; last: number | null };
  };
  /** Where something is by now. */
  sealedFind: { ask: { node: string }; answer: SealedPlace };
  /** The entries that have brought versions of a node, the newest first, those before one where that is given. */
  sealedVersionEntries: {
    ask: { node: string; before: number | null; limit: number };
    answer: number[];
  };
  /** The version of a node that an entry has brought. */
  sealedVersion: { ask: { node: string; entry: SealedEntry }; answer: SealedVersion };
  /** Begins to read a file, or the version of it that an entry has brought; returns by which number. */
  sealedBegin: { ask: { file: string; entry: SealedEntry | null }; answer: number };
  /** Begins to read a folder with everything in it as a ZIP file of this length; it goes on as a file does. */
  sealedArchive: { ask: { folder: string }; answer: { reading: number; size: number } };
  /** Takes what was wanted, in that order, and reads into memory that is there, or new one. All memory is moved to the worker and back. */
  sealedStep: {
    ask: {
      reading: number;
      given: { bytes: Uint8Array<ArrayBuffer>; isEntry: boolean }[];
      into: Uint8Array<ArrayBuffer> | null;
    };
    answer: SealedStep;
  };
  /** Ends a reading; of an archive it returns the path of the file that was read, if one was. */
  sealedEnd: { ask: { reading: number }; answer: string | null };
  /** Seals notes, which only whoever has unlocked the workspace reads. */
  sealedNotes: { ask: { notes: string[] }; answer: Uint8Array<ArrayBuffer>[] };
  /** Opens notes; of what is none of this workspace there is nothing. */
  sealedNotesOpen: { ask: { sealed: Uint8Array[] }; answer: (string | null)[] };
  /** Begins a change; returns by which number. */
  sealedChange: { ask: SealedChange; answer: number };
  /**
   * Begins to put a file, over the version that somebody has seen or where nothing is there, with what was stored of it before; returns by
   * which number, the mark of what is stored for it now, and by which name the sketch of what it replaces was kept.
   */
  sealedPut: {
    ask: SealedPut & { kept: SealedKept | null };
    answer: { deed: number; mark: string; base: string | null };
  };
  /** Takes that sketch. */
  sealedPutSketch: { ask: { deed: number; sketch: Uint8Array }; answer: null };
  /** Gives the sketch of what was put, once; of a large file there is none. */
  sealedTakeSketch: { ask: { deed: number }; answer: SealedSketch | null };
  /** Takes what was wanted, in that order, and says what is wanted next to know what need not be sent. */
  sealedKnown: {
    ask: { deed: number; given: { bytes: Uint8Array; isEntry: boolean }[] };
    answer: SealedPart[];
  };
  /** Reads on in the file that is put; says how far it is, and gives packs that are full. */
  sealedPack: {
    ask: { deed: number };
    answer: { packs: SealedPack[]; done: number; isOver: boolean };
  };
  /** Returns the commit that is to be sent, the same until it is settled; nothing where there is nothing to change. */
  sealedPropose: { ask: { deed: number }; answer: Uint8Array<ArrayBuffer> | null };
  /** Says what became of it, once the log was read. */
  sealedSettle: { ask: { deed: number }; answer: SealedDone };
  sealedForget: { ask: { deed: number }; answer: null };
}
