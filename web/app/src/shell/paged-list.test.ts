import { expect, test } from 'vitest';
import { PagedList, type Page } from './paged-list.svelte.ts';

/** Tells numbers, two in a page, when it is let. */
class Numbers extends PagedList<number> {
  readonly asked: (string | undefined)[] = [];
  #waiting: (() => void)[] = [];

  protected override async page(cursor: string | undefined): Promise<Page<number>> {
    this.asked.push(cursor);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const first = Number(cursor ?? 0);
    return { items: [first, first + 1], next: first < 8 ? String(first + 2) : null };
  }

  /** Lets everything be answered that is asked, and what is asked then. */
  async answer(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      this.#waiting.splice(0).forEach((resolve) => resolve());
      await Promise.resolve();
    }
  }
}

test('whoever asks for more while the list is read anew gets it after that, and once', async () => {
  const numbers = new Numbers();
  void numbers.refresh();
  await numbers.answer();
  expect(numbers.list).toEqual([0, 1]);
  void numbers.refresh();
  void numbers.more();
  void numbers.more();
  await numbers.answer();
  expect(numbers.list).toEqual([0, 1, 2, 3]);
  expect(numbers.asked).toEqual([undefined, undefined, '2']);
});

test('whoever presses twice for one more page gets one', async () => {
  const numbers = new Numbers();
  void numbers.refresh();
  await numbers.answer();
  void numbers.more();
  void numbers.more();
  await numbers.answer();
  expect(numbers.list).toEqual([0, 1, 2, 3]);
});
