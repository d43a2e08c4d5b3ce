// How many conflicts of the workspace that is open wait for a decision: a number for the top bar.

import type { SynclineClient } from '@syncline/api';
import { untrack } from 'svelte';
import { addressOfConflicts } from '../shell/route.ts';

class OpenConflicts {
  workspace = $state('');
  /** Where they are shown. */
  address = $state('');
  count = $state(0);
  #isBusy = false;
  #isStale = false;

  /** Asks how many there are now. Whoever asks meanwhile is answered by one more request. */
  async look(client: SynclineClient, workspace: string): Promise<void> {
    if (workspace !== this.workspace) this.say(workspace, 0);
    this.#isStale = true;
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#hasNews()) {
      this.#isStale = false;
      await this.#ask(client, this.workspace);
    }
    this.#isBusy = false;
  }

  /** Asks anew for every entry of the log that somebody hears of. */
  follow(client: SynclineClient, workspace: string, seq: number): void {
    void seq;
    untrack(() => void this.look(client, workspace));
  }

  /** Takes over what a list of them knows. */
  say(workspace: string, count: number, address = addressOfConflicts(workspace)): void {
    this.workspace = workspace;
    this.address = address;
    this.count = count;
  }

  async #ask(client: SynclineClient, workspace: string): Promise<void> {
    const asking = { params: { workspace }, query: { limit: 1 } };
    // Whoever cannot be told sees no number; the list says why.
    const page = await client
      .call('GET /workspaces/{workspace}/conflicts', asking)
      .catch(() => null);
    if (page && workspace === this.workspace) this.count = page.count;
  }

  /** Whether somebody asked since the last request began; they do so while others wait. */
  #hasNews(): boolean {
    return this.#isStale;
  }
}

export const openConflicts = new OpenConflicts();
