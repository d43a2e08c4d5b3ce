// The core that the program has, too, in the browser: it cuts and names files in workers, in memory that does not grow with them.
// Load it when it is wanted (`await import('@syncline/core')`): a page of files is there before.

export type { BlockDelta, BlockDeltaOptions } from './block-delta.ts';
export { Core } from './core.ts';
export type { ChunkOptions, CoreOptions, JobOptions } from './core.ts';
export type { Delta, DeltaBody, DeltaOptions, Sendable } from './delta.ts';
export type {
  ChunkList,
  Proof,
  SealedActivity,
  SealedConflict,
  SealedDeleted,
  SealedDone,
  SealedHit,
  SealedKept,
  SealedMade,
  SealedNode,
  SealedPlaced,
  SealedShown,
  SealedHappened,
  SealedVersion,
  Tuning,
} from './protocol.ts';
export { PairingGuest, type PairingPlace } from './pairing-guest.ts';
export { PairingHost } from './pairing-host.ts';
export type { PairingBoxes, PairingPart } from './pairing.ts';
export { SealedMaking, type MakingOptions } from './sealed-making.ts';
export { SealedWorkspace } from './sealed.ts';
export type { SealedContent } from './sealed-files.ts';
export type { SealedDevice, SealedOptions, SealedSource, SeenHead } from './sealed.ts';
export type {
  SealedChanges,
  SealedPutDone,
  SealedSketches,
  SealedStored,
  SealedUndoable,
} from './sealed-changes.ts';
export { CoreError, FileUnreadable } from './error.ts';
export type { CoreErrorCode } from './error.ts';
export { startBaseline } from './start.ts';
export { StagMeter } from './stag-meter.ts';
export type { Stagnation } from './stag-meter.ts';
