// What browsers have for picked folders beyond what TypeScript knows of, and not all of them have it.

import { TRASH } from './names.ts';

interface Picker {
  showDirectoryPicker?(options: {
    id: string;
    mode: 'readwrite';
  }): Promise<FileSystemDirectoryHandle>;
}

interface Permitted {
  queryPermission?(how: { mode: 'readwrite' }): Promise<PermissionState>;
  requestPermission?(how: { mode: 'readwrite' }): Promise<PermissionState>;
}

interface Observer {
  observe(handle: FileSystemDirectoryHandle, options: { recursive: boolean }): Promise<void>;
  disconnect(): void;
}

interface Change {
  relativePathComponents?: string[] | null;
}

interface Observing {
  FileSystemObserver?: new (onChange: (changes: Change[]) => void) => Observer;
}

const READ_AND_WRITE = { mode: 'readwrite' } as const;

/** Whether the browser can keep a folder in sync. */
export function canPick(): boolean {
  return 'showDirectoryPicker' in window;
}

/** Asks for a folder; nothing where somebody gives up. Has to be called right after somebody did something. */
export async function pickFolder(): Promise<FileSystemDirectoryHandle | null> {
  try {
    const options = { id: 'syncline', ...READ_AND_WRITE };
    return (await (window as Window & Picker).showDirectoryPicker?.(options)) ?? null;
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    throw error;
  }
}

export async function isPermitted(handle: FileSystemDirectoryHandle): Promise<boolean> {
  const state = await (handle as Permitted).queryPermission?.(READ_AND_WRITE);
  return state === undefined || state === 'granted';
}

/** Asks somebody, right after a click. */
export async function askPermission(handle: FileSystemDirectoryHandle): Promise<boolean> {
  const state = await (handle as Permitted).requestPermission?.(READ_AND_WRITE);
  return state === undefined || state === 'granted';
}

/** Hears of changes in a folder where the browser tells them. It need not tell all: somebody looks from time to time in any case. */
export async function observe(
  handle: FileSystemDirectoryHandle,
  onChange: () => void,
): Promise<() => void> {
  const { FileSystemObserver } = window as Window & Observing;
  if (!FileSystemObserver) return () => undefined;
  try {
    const observer = new FileSystemObserver((changes) => {
      // What a round writes aside wakes no other one: what does not fit would be fetched again without a pause.
      if (changes.some(({ relativePathComponents: at }) => at?.[0] !== TRASH)) onChange();
    });
    await observer.observe(handle, { recursive: true });
    return () => observer.disconnect();
  } catch {
    return () => undefined;
  }
}
