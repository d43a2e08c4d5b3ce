// The baseline of the paper in plain JavaScript, to compare with what the core does: nothing else runs it. A file is in memory as a
// whole, and whoever calls stands still while it is searched.

export { BaselineError } from './error.ts';
export type { BaselineErrorCode } from './error.ts';
export { RecipeWorker } from './parallel.ts';
export { WebRsync } from './web-rsync.ts';
export type { RecipeBody, WebRsyncOptions } from './web-rsync.ts';
