import { nameOf, ROOT, type NodePath } from '@syncline/api';
import type { Words } from '../words/en.ts';
import { shownName } from '../words/format.ts';

/** What a folder is called by its way from the workspace, for people; `title` is the name of that. */
export function placeOf(folder: NodePath, title: string): string {
  return folder === ROOT ? title : shownName(folder.split('/').map(nameOf).join('/'));
}

/** Says what is wrong with a name, or nothing. */
export function faultOf(name: string, words: Words['name']): string | null {
  if (name === '') return words.empty;
  if (name.includes('/') || name.includes('\0')) return words.slash;
  if (name === '.' || name === '..') return words.dots;
  if (name === '.syncline') return words.service;
  if (new TextEncoder().encode(name).length > 255) return words.long;
  return null;
}

/** Where the ending of a name begins, its dot included; a name that begins with a dot has none. */
export function endingAt(name: string): number {
  const dot = name.lastIndexOf('.');
  return dot > 0 ? dot : name.length;
}

/** Finds a name that is free: `plan (2).pdf`, `plan (3).pdf` and so on. */
export async function freeName(
  name: string,
  isTaken: (name: string) => Promise<boolean>,
): Promise<string> {
  const at = endingAt(name);
  for (let number = 2; ; number++) {
    const next = `${name.slice(0, at)} (${number})${name.slice(at)}`;
    if (!(await isTaken(next))) return next;
  }
}
