// What has happened, in a word, and how to take it back.

export interface Notice {
  id: number;
  text: string;
  isError: boolean;
  undo?: (() => Promise<void>) | undefined;
}

const SHOWN_MS = 10_000;

class Notices {
  list = $state.raw<Notice[]>([]);
  #next = 0;

  say(text: string, undo?: () => Promise<void>): void {
    this.#add({ text, isError: false, undo });
  }

  /** An error stays until somebody dismisses it. */
  fail(text: string): void {
    if (!this.list.some((notice) => notice.isError && notice.text === text)) {
      this.#add({ text, isError: true });
    }
  }

  clear(): void {
    this.list = [];
  }

  dismiss(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id);
  }

  /** Takes the newest action back that can be. */
  async undo(notice = this.list.findLast((found) => found.undo)): Promise<boolean> {
    if (!notice?.undo) return false;
    this.dismiss(notice.id);
    await notice.undo();
    return true;
  }

  #add(notice: Omit<Notice, 'id'>): void {
    const id = this.#next++;
    this.list = [...this.list.slice(-3), { ...notice, id }];
    if (!notice.isError) setTimeout(() => this.dismiss(id), SHOWN_MS);
  }
}

export const notices = new Notices();
