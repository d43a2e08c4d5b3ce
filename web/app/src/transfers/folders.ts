// Makes the folders that files go into.

import { ProblemError, type NodePath } from '@syncline/api';

/** Makes each folder once for all files in it. */
export class FolderMaker {
  readonly #made = new Map<string, Promise<void>>();

  constructor(readonly makeFolder: (workspace: string, folder: NodePath) => Promise<unknown>) {}

  /** Makes folders, each inside of the one before it. */
  async make(workspace: string, folders: readonly NodePath[]): Promise<void> {
    for (const folder of folders) {
      const key = `${workspace}/${folder}`;
      const making = this.#made.get(key) ?? this.#make(workspace, folder, key);
      this.#made.set(key, making);
      await making;
    }
  }

  /** Asks the server again next time: somebody may have deleted them. */
  forget(): void {
    this.#made.clear();
  }

  async #make(workspace: string, folder: NodePath, key: string): Promise<void> {
    try {
      await this.makeFolder(workspace, folder);
    } catch (error) {
      if (error instanceof ProblemError && error.code === 'taken') return;
      this.#made.delete(key);
      throw error;
    }
  }
}
