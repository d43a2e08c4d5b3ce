// The door to a server's `/api/v1`, with the types of docs/openapi.json. It knows no view and keeps no state but the token.

export { fetchArchive, fetchArchiveLength } from './archive.ts';
export { lengthOfBody } from './body.ts';
export { readerIntoMemory } from './bytes.ts';
export { SynclineClient } from './client.ts';
export type { ClientOptions, Condition } from './client.ts';
export type { FileAnswer, Place } from './content.ts';
export { commitDelta, fetchChunkList, fetchGenesis, postDelta } from './delta.ts';
export type { DeltaAnswer, DeltaPut } from './delta.ts';
export { listen } from './events.ts';
export type { EntryEvent, Listening } from './events.ts';
export { bytesOfHex, hexOf, randomHex } from './hex.ts';
export { encodeName, joinPath, nameOf, parentOf, partsOf, ROOT } from './path.ts';
export type { NodePath } from './path.ts';
export { NoConnection, ProblemError } from './problem.ts';
export {
  createSealed,
  fetchEntries,
  fetchEnvelope,
  fetchIdentity,
  fetchLockedKeys,
  fetchPackPart,
  fetchPairingBox,
  OtherKeys,
  putLockedKeys,
  putPairingBox,
  removePairingBox,
  sendCommit,
  storePack,
} from './sealed.ts';
export type * from './schema.ts';
