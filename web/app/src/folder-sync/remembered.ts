// Whether this browser keeps any folder in sync: all else about them is loaded when it does.

const KEY = 'syncline.folder-sync';

export function hasFolders(): boolean {
  return localStorage.getItem(KEY) !== null;
}

export function setHasFolders(): void {
  localStorage.setItem(KEY, 'yes');
}
