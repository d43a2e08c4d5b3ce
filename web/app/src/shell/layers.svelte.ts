// Which dialogs are open. What stands outside of the top one can be neither pressed nor heard.

/** The ids of the dialogs that are open, the top one last. */
let open = $state.raw<readonly string[]>([]);

/** The dialog on top; nothing where the page itself is. */
export function topLayer(): string | undefined {
  return open.at(-1);
}

/** Says that a dialog is open, and returns what says that it is not any more. */
export function enterLayer(id: string): () => void {
  open = [...open, id];
  return () => (open = open.filter((one) => one !== id));
}
