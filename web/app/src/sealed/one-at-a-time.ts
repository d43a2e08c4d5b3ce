/**
 * Does something once at a time, however often it is asked for: who asks while it is done waits until it was done once more, together with all
 * the others who do.
 */
export function oneAtATime(deed: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = () => {
    running = deed().finally(() => (running = undefined));
    return running;
  };
  const startNext = () => {
    next = undefined;
    return start();
  };
  return () => {
    if (next) return next;
    if (!running) return start();
    next = running.then(startNext, startNext);
    return next;
  };
}
