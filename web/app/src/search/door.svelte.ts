/** Whether the search is wanted, and whether its field has the keyboard already. */
export const search = $state({ isOpen: false, isShown: false });

/** What somebody types behind the shortcut while the field is on its way. */
let early = { text: '', isHasty: false };

/** Keeps a key for a field that is on its way; says whether it did. */
export function keepEarly({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (!search.isOpen || search.isShown || ctrlKey || metaKey || altKey) return false;
  if (key === 'Enter') early.isHasty = early.text !== '';
  else if (key === 'Backspace') early.text = early.text.slice(0, -1);
  else if (key.length === 1) early.text += key;
  else return false;
  return true;
}

/** Gives what was kept to the field, once. */
export function takeEarly(): typeof early {
  const taken = early;
  early = { text: '', isHasty: false };
  return taken;
}

/** What a list is to choose and show as soon as it has it: a node, and the address of its folder. */
let wanted = $state.raw<{ id: string; address: string } | null>(null);

/** Asks the list at an address for a node. */
export function want(id: string, address: string): void {
  wanted = { id, address };
}

interface List {
  grid: { reveal(id: string): Promise<void>; focus(): void };
  rows: readonly { id: string }[];
  /** Where the list is. */
  address: string;
}

/** Makes a list that is complete choose and show what a search has found in it. Belongs into a component. */
export function showWanted(listOf: () => List | undefined | false): void {
  $effect(() => {
    if (!wanted) return;
    const { id, address } = wanted;
    const list = listOf();
    if (!list || list.address !== address || !list.rows.some((row) => row.id === id)) return;
    wanted = null;
    void list.grid.reveal(id).then(() => list.grid.focus());
  });
}
