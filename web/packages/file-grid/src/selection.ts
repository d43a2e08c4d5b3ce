// What is selected, and the row that the keys speak about: values that are replaced, never changed.

export interface Selection {
  readonly keys: ReadonlySet<string>;
  /** The row that the keyboard is at. */
  readonly active: string | null;
  /** Where a range begins. */
  readonly anchor: string | null;
}

export const NOTHING: Selection = { keys: new Set(), active: null, anchor: null };

/** How a move treats what is selected: only the target, all up to the target, or nothing changes. */
export type Reach = 'only' | 'range' | 'none';

/** Rows by place and by key. */
export interface Order {
  readonly count: number;
  keyAt(index: number): string;
  indexOf(key: string): number | undefined;
}

export function select(selection: Selection, order: Order, index: number, reach: Reach): Selection {
  const key = order.keyAt(index);
  if (reach === 'none') return { ...selection, active: key };
  if (reach === 'only') return { keys: new Set([key]), active: key, anchor: key };
  const anchor = selection.anchor ?? selection.active ?? key;
  const from = order.indexOf(anchor) ?? index;
  const keys = new Set<string>();
  for (let at = Math.min(from, index); at <= Math.max(from, index); at++) keys.add(order.keyAt(at));
  return { keys, active: key, anchor };
}

/** Selects one more row, or one less. */
export function toggle(selection: Selection, key: string): Selection {
  const keys = new Set(selection.keys);
  if (!keys.delete(key)) keys.add(key);
  return { keys, active: key, anchor: key };
}

export function selectAll(selection: Selection, order: Order): Selection {
  const keys = new Set<string>();
  for (let at = 0; at < order.count; at++) keys.add(order.keyAt(at));
  return { ...selection, keys };
}

export function clear(selection: Selection): Selection {
  return { ...selection, keys: new Set() };
}
