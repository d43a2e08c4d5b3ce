import type { Sorting } from '@syncline/file-grid';
import type { Listed } from './kinds.ts';

const collators = new Map<string, Intl.Collator>();

function collatorOf(locale: string): Intl.Collator {
  const found = collators.get(locale);
  if (found) return found;
  const made = new Intl.Collator(locale, { numeric: true });
  collators.set(locale, made);
  return made;
}

/** Sorts nodes: folders first, then by the column, and what is equal there by name. */
export function sortNodes<Row extends Listed>(
  nodes: readonly Row[],
  sorting: Sorting,
  locale: string,
): Row[] {
  const { compare } = collatorOf(locale);
  const sign = sorting.isDescending ? -1 : 1;
  const byColumn = (a: Row, b: Row): number => {
    if (sorting.column === 'size') return (a.size ?? 0) - (b.size ?? 0);
    if (sorting.column === 'modified') return (a.modified ?? 0) - (b.modified ?? 0);
    return compare(a.name, b.name);
  };
  return nodes.toSorted((a, b) => {
    const folders = Number(b.kind === 'folder') - Number(a.kind === 'folder');
    return folders || sign * byColumn(a, b) || compare(a.name, b.name);
  });
}
