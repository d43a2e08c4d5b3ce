import type { Reach } from './selection.ts';

/** What a key means to the grid. */
export type Intent =
  | { kind: 'move'; to: 'up' | 'down' | 'first' | 'last' | 'pageUp' | 'pageDown'; reach: Reach }
  | { kind: 'column'; by: 1 | -1 }
  | { kind: 'toggle' | 'all' | 'clear' | 'open' | 'rename' | 'delete' }
  | { kind: 'type'; text: string };

export type Key = Pick<KeyboardEvent, 'key' | 'shiftKey' | 'ctrlKey' | 'metaKey' | 'altKey'>;

const MOVES = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  Home: 'first',
  End: 'last',
  PageUp: 'pageUp',
  PageDown: 'pageDown',
} as const;

const DEEDS = { Escape: 'clear', Enter: 'open', F2: 'rename', Delete: 'delete' } as const;

function has<Table extends object>(table: Table, key: string): key is keyof Table & string {
  return Object.hasOwn(table, key);
}

/** Says what a key means, or nothing where it belongs to the page or the browser. */
export function intentOf(event: Key, isTyping: boolean): Intent | null {
  const { key, shiftKey } = event;
  const control = event.ctrlKey || event.metaKey;
  if (event.altKey) return null;
  if (has(MOVES, key)) {
    const reach = shiftKey ? 'range' : control ? 'none' : 'only';
    return { kind: 'move', to: MOVES[key], reach };
  }
  if (key === ' ' && !(isTyping && !control)) return { kind: 'toggle' };
  if (control) return key.toLowerCase() === 'a' && !shiftKey ? { kind: 'all' } : null;
  if (key === 'ArrowRight') return { kind: 'column', by: 1 };
  if (key === 'ArrowLeft') return { kind: 'column', by: -1 };
  if (has(DEEDS, key)) return shiftKey ? null : { kind: DEEDS[key] };
  // A question mark asks the page for help, and a slash, which is in no name, for a search.
  return [...key].length === 1 && key !== '?' && key !== '/' ? { kind: 'type', text: key } : null;
}

/** What somebody types to get to a name; a pause begins anew, and so does whatever else is done by keys. */
export class TypeAhead {
  #text = '';
  #last = -Infinity;

  /** Whether somebody is in the middle of a name. */
  isTyping(now: number): boolean {
    return this.#text !== '' && now - this.#last < 700;
  }

  /** Takes another letter and returns what is searched for. */
  type(text: string, now: number): string {
    this.#text = this.isTyping(now) ? this.#text + text : text;
    this.#last = now;
    return this.#text;
  }

  end(): void {
    this.#text = '';
  }
}

/**
 * Finds the next row whose name begins with the text, from the active row on and around the end. One letter, also when it is repeated and
 * no name begins so, goes on to the next row that begins with it.
 */
export function findByName(
  text: string,
  count: number,
  active: number,
  nameAt: (index: number) => string,
): number | null {
  const [letter = '', ...more] = text.toLocaleLowerCase();
  const search = (wanted: string, first: number): number | null => {
    for (let step = 0; step < count; step++) {
      const index = (first + step) % count;
      if (nameAt(index).toLocaleLowerCase().startsWith(wanted)) return index;
    }
    return null;
  };
  if (more.length === 0) return search(letter, active + 1);
  const found = search(letter + more.join(''), Math.max(0, active));
  if (found !== null || more.some((other) => other !== letter)) return found;
  return search(letter, active + 1);
}
