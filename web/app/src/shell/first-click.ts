/** Takes no second click of a double click: what is under it by then may be the next thing, which has moved up. */
export function firstClickOnly(node: HTMLElement): () => void {
  const hear = (event: MouseEvent) => {
    if (event.detail > 1) event.stopPropagation();
  };
  node.addEventListener('click', hear, true);
  return () => node.removeEventListener('click', hear, true);
}
