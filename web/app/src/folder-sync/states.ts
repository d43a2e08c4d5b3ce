// How a folder that is kept in sync stands.

export type State =
  /** Another tab keeps this folder. */
  | 'elsewhere'
  /** The workspace is encrypted, and not open in this tab. */
  | 'locked'
  /** The browser wants somebody to allow it again. */
  | 'permission'
  /** Looked at for the first time: somebody is told what would happen. */
  | 'ready'
  | 'working'
  | 'watching'
  /** So much is absent that somebody is asked. */
  | 'asking'
  | 'offline'
  | 'gone-here'
  | 'gone-there'
  | 'failed'
  | 'paused';
