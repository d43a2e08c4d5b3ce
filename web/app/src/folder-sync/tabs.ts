// What is said of a folder in one tab is done in all: another one may keep it.

type Said = { id: string } & ({ isPaused: boolean } | { isRemoved: true });

const tabs = new BroadcastChannel('syncline folder sync');

/** Tells the other tabs, once it is saved. */
export function tellOthers(said: Said): void {
  tabs.postMessage(said);
}

export function hearOthers(hear: (said: Said) => void): void {
  tabs.onmessage = ({ data }: MessageEvent<Said>) => hear(data);
}
