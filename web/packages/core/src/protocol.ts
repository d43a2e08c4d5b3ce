// What a page and its workers say to each other. A worker has one session at a time, and in it one call.

import type { Failed } from './error.ts';

/** The chunks of a file, in order. */
export interface ChunkList {
  /** Their lengths in bytes. */
  lengths: Uint32Array<ArrayBuffer>;
  /** Their ids, 32 bytes each. */
  ids: Uint8Array<ArrayBuffer>;
}

/** How long something is in bytes, and how many of them are bytes of the file. */
export interface DeltaLength {
  length: number;
  literal: number;
}

/** A message about a password, and one about the password that is to take its place. */
export interface Proof {
  message: Uint8Array<ArrayBuffer>;
  newMessage: Uint8Array<ArrayBuffer> | null;
}
/** How blocks are searched and compared: as at first, with what the paper adds, and with that after a check has failed. */
export type Tuning = 'classic' | 'plus' | 'careful';

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

/** What opens a workspace: the locked keys of one's own, or what the owner of another one has sealed to this account. */
export type SealedKeys =
  | { generation: number; keys: Uint8Array }
  | {
      identity: { public: Uint8Array; locked: Uint8Array };
      envelope: Uint8Array;
      /** The generation of the newest keys that were seen, or 0. */
      seen: number;
    };

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

/** What can be read of a file now, and what is wanted next. */
export interface SealedStep {
  bytes: Uint8Array<ArrayBuffer>;
  isOver: boolean;
  wanted: SealedPart[];
}

/** A change of a sealed workspace that is one commit, or a few. */
export type SealedChange =
  | { kind: 'folder'; folder: string; name: string }
  | { kind: 'relocate'; node: string; folder: string; name: string }
  | { kind: 'remove'; nodes: { id: string; version: number }[] }
  /** Takes a removal back, by its number. */
  | { kind: 'restore'; removal: number };

/** A pack that is to be stored. */
export interface SealedPack {
  id: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** What became of a change. */
export interface SealedDone {
  isOver: boolean;
  /** What it was about: the folder that was made, what was moved, the file that was put. */
  node: string | null;
  /** Whether a file lies beside the one that somebody else has changed at the same moment. */
  isBeside: boolean;
  /** Whether something was let be, or has another name, because of what others have done at the same moment. */
  isPartial: boolean;
}

/** What can be called, with what goes there and what comes back. */
export interface Calls {
  chunk: { ask: { file: Blob; secret: Uint8Array; average: number }; answer: ChunkList };
  /** Begins a delta: cuts and names the file where `base` is a chunk list; asks for sums where those would help. */
  deltaBegin: {
    ask: {
      file: Blob;
      genesis: Uint8Array;
      session: Uint8Array;
      base: Uint8Array;
      isKept: boolean;
    };
    answer: Uint8Array<ArrayBuffer> | null;
  };
  /** Makes the messages of the delta, which come as parts; takes the answer to what was asked. */
  deltaSend: { ask: { sums: Uint8Array | null }; answer: DeltaLength };
  /** Takes the answer to a delta; the messages with what is wanted come as parts. */
  deltaWanted: { ask: { answer: Uint8Array }; answer: DeltaLength };
  /** Returns what to keep of the new version. */
  deltaKept: { ask: null; answer: Uint8Array<ArrayBuffer> | null };
  /** Begins to prove a password, and to set another one where there is one. */
  proofBegin: {
    ask: { password: string; newPassword: string | null; seed: Uint8Array };
    answer: Proof;
  };
  /** Takes the answers of the server; returns what to send then. */
  proofFinish: { ask: Proof; answer: Proof };
  /** Begins to set the password of a new account; returns what to send. */
  passwordBegin: {
    ask: { password: string; seed: Uint8Array };
    answer: Uint8Array<ArrayBuffer>;
  };
  /** Takes the answer of the server; returns what it is to keep. */
  passwordFinish: { ask: { answer: Uint8Array }; answer: Uint8Array<ArrayBuffer> };
  /** Begins a delta of the paper; returns its first message. */
  blockBegin: {
    ask: {
      file: Blob;
      genesis: Uint8Array;
      session: Uint8Array;
      tuning: Tuning;
      isReversed: boolean;
    };
    answer: Uint8Array<ArrayBuffer>;
  };
  /** Takes what the server said; the messages that follow come as parts. */
  blockReply: { ask: { message: Uint8Array }; answer: DeltaLength };
  /** Takes an answer; returns whether the new version is there. */
  blockAnswer: { ask: { message: Uint8Array }; answer: boolean };
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
  /** Takes newer keys of somebody else's workspace, and says whether they are newer. */
  sealedRenew: {
    ask: { envelope: Uint8Array };
    /** Up to which entry the log is folded, too. */
    answer: { isNewer: boolean; generation: number; head: number };
  };
  /** Checks and folds entries; says how many there were, which was the last of all, and whether what is written behind it counts. */
  sealedFold: {
    ask: { frame: Uint8Array };
    answer: { count: number; head: number; mayWrite: boolean };
  };
  sealedList: { ask: { folder: string }; answer: SealedNode[] };
  sealedWay: { ask: { folder: string }; answer: SealedNode[] };
  sealedShown: { ask: null; answer: SealedShown };
  /** Begins to read a file; returns by which number. */
  sealedBegin: { ask: { file: string }; answer: number };
  /** Takes what was wanted, in that order. */
  sealedStep: {
    ask: { reading: number; given: { bytes: Uint8Array; isEntry: boolean }[] };
    answer: SealedStep;
  };
  sealedEnd: { ask: { reading: number }; answer: null };
  /** Begins a change; returns by which number. */
  sealedChange: { ask: SealedChange; answer: number };
  /** Begins to put a file, over the version that somebody has seen or where nothing is there; returns by which number. */
  sealedPut: {
    ask: { folder: string; name: string; over: number | null; file: File };
    answer: number;
  };
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
  /** Ends the session; says how many bytes of memory the module has. */
  end: { ask: null; answer: number };
}

export type CallName = keyof Calls;

/** A call on its way to a worker. */
export type Call = { [Name in CallName]: { name: Name; ask: Calls[Name]['ask'] } }[CallName];

/** What a worker says: how many bytes it has gone through, what it found so far, and once how the call ended. */
export type Reply =
  | { kind: 'progress'; done: number }
  | { kind: 'part'; bytes: Uint8Array<ArrayBuffer> }
  | { kind: 'answer'; answer: unknown }
  | { kind: 'failed'; failed: Failed };
