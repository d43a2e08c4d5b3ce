/** Whether the search is shown. */
export const search = $state({ isOpen: false });

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
