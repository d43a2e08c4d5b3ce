// Which rows stand in the document, and where: pure arithmetic.
//
// There are as many slots as rows are near the view. Row `index` stands in slot `index % slots`, so that scrolling by one row gives one
// slot another row, and leaves all others as they are.

/** Rows that stand ready above and below the view. */
export const OVERSCAN = 8;

export interface View {
  count: number;
  rowHeight: number;
  /** Of the part of the view in which rows are seen. */
  height: number;
  scrollTop: number;
}

export interface Window {
  /** The first row that has a slot. */
  start: number;
  slots: number;
}

export function windowOf({ count, rowHeight, height, scrollTop }: View): Window {
  const slots = Math.min(count, Math.ceil(height / rowHeight) + 1 + 2 * OVERSCAN);
  const first = Math.floor(scrollTop / rowHeight) - OVERSCAN;
  return { start: Math.max(0, Math.min(first, count - slots)), slots };
}

/** The row that stands in a slot. */
export function rowOfSlot({ start, slots }: Window, slot: number): number {
  const offset = (slot - (start % slots) + slots) % slots;
  return start + offset;
}

export function isInside({ start, slots }: Window, index: number): boolean {
  return index >= start && index < start + slots;
}

/** Where the view has to be scrolled for a row to be seen whole. */
export function scrollTopFor(index: number, view: View): number {
  const top = index * view.rowHeight;
  const bottom = top + view.rowHeight;
  if (top < view.scrollTop) return top;
  if (bottom > view.scrollTop + view.height) return Math.max(0, bottom - view.height);
  return view.scrollTop;
}

/** How many rows a page up or down moves. */
export function rowsOfPage({ height, rowHeight }: View): number {
  return Math.max(1, Math.floor(height / rowHeight) - 1);
}
