// A folder with more entries than a test has the time to make.

import type { Node } from '@syncline/api';

export const MANY = 100_000;

/** A page of the list of it. */
export function pageOf(template: Node, start: number): { nodes: Node[]; next: string | null } {
  const nodes = Array.from({ length: 1_000 }, (_, index) => {
    const name = `${String(start + index).padStart(6, '0')}.txt`;
    return { ...template, id: name, name, path: `Letters/${name}` };
  });
  const next = start + 1_000;
  return { nodes, next: next < MANY ? String(next) : null };
}
