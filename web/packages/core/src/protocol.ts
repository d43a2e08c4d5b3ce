// What a page and its workers say to each other. A worker has one session at a time, and in it one call.

import type { Failed } from './error.ts';
import type { SealedCalls } from './sealed-protocol.ts';

export type * from './sealed-protocol.ts';

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

/** What can be called, with what goes there and what comes back. */
export interface Calls extends SealedCalls {
  chunk: { ask: { file: Blob; secret: Uint8Array; average: number }; answer: ChunkList };
  /** Begins a delta: returns the first question; where `base` is a chunk list the file is cut and named for it. */
  deltaBegin: {
    ask: { file: Blob; genesis: Uint8Array; session: Uint8Array; base: Uint8Array | null };
    answer: Uint8Array<ArrayBuffer> | null;
  };
  /** Makes the messages of a delta against what was kept, which come as parts: there is nothing to ask. */
  deltaOfKept: {
    ask: {
      file: Blob;
      genesis: Uint8Array;
      session: Uint8Array;
      base: Uint8Array;
      old: Blob | null;
    };
    answer: DeltaLength;
  };
  /** Takes the answer to a question; returns the next one. */
  deltaTold: { ask: { message: Uint8Array }; answer: Uint8Array<ArrayBuffer> | null };
  /** Takes the chunk list where questions have not told it; returns the next question. */
  deltaList: { ask: { list: Uint8Array }; answer: Uint8Array<ArrayBuffer> | null };
  /** Makes the messages of a delta that was begun, which come as parts. */
  deltaSend: { ask: null; answer: DeltaLength };
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
  /** Reads the code of a pairing as it was typed; says under which name its boxes lie. */
  pairingName: { ask: { code: string }; answer: string };
  /** Answers an offer; nothing is open yet. */
  pairingJoin: {
    ask: {
      id: string;
      genesis: Uint8Array;
      offer: Uint8Array;
      code: string;
      device: string;
      deviceName: string;
      seed: Uint8Array;
    };
    answer: { host: string; digits: string; request: Uint8Array<ArrayBuffer>; seconds: number };
  };
  /** Takes what was granted, and opens the workspace by it. */
  pairingAccept: { ask: { grant: Uint8Array }; answer: { name: string } };
  /** Opens the account key for one pairing, and makes its code. */
  pairingOpen: {
    ask: {
      id: string;
      genesis: Uint8Array;
      generation: number;
      keys: Uint8Array;
      secret: string;
      deviceName: string;
      seed: Uint8Array;
    };
    answer: { code: string; name: string; offer: Uint8Array<ArrayBuffer>; seconds: number };
  };
  /** Takes a request; the first one that opens counts. */
  pairingAsk: { ask: { request: Uint8Array }; answer: { deviceName: string; digits: string } };
  pairingGrant: { ask: null; answer: Uint8Array<ArrayBuffer> };
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
