import { expect, test } from 'vitest';
import { chosenOf } from './dropped.ts';

const refuse = () => Promise.reject(new DOMException('it is gone', 'NotFoundError'));

function fileHandle(name: string, getFile = () => Promise.resolve(new File(['x'], name))) {
  return { kind: 'file', name, getFile };
}

function folderHandle(name: string, inside: unknown[], isReadable = true) {
  async function* values() {
    if (!isReadable) throw new DOMException('it cannot be read', 'NotReadableError');
    yield* inside;
  }
  return { kind: 'directory', name, values };
}

function dropOf(...handles: unknown[]): DataTransfer {
  const items = handles.map((handle) => ({
    kind: 'file',
    webkitGetAsEntry: () => null,
    getAsFile: () => null,
    getAsFileSystemHandle: () => Promise.resolve(handle),
  }));
  return { items } as unknown as DataTransfer;
}

test('what cannot be read of a folder is named, and all else goes', async () => {
  const trip = folderHandle('trip', [
    fileHandle('a.txt'),
    fileHandle('locked.txt', refuse),
    folderHandle('closed', [], false),
    folderHandle('empty', []),
    folderHandle('deep', [fileHandle('b.txt')]),
  ]);
  const unreadable: string[] = [];
  const chosen = await chosenOf(dropOf(trip, fileHandle('c.txt')), (path) => unreadable.push(path));
  expect(unreadable).toEqual(['trip/locked.txt', 'trip/closed']);
  const paths = chosen.map(({ file, folders }) => [...folders, file?.name ?? ''].join('/'));
  expect(paths).toEqual(['trip/a.txt', 'trip/empty/', 'trip/deep/b.txt', 'c.txt']);
});

test('as many files as a folder may have are chosen', async () => {
  const COUNT = 130_000;
  const file = new File(['x'], 'x');
  const inside = Array.from({ length: COUNT }, () => fileHandle('x', () => Promise.resolve(file)));
  const chosen = await chosenOf(dropOf(folderHandle('many', inside)), () => undefined);
  expect(chosen).toHaveLength(COUNT);
}, 60_000);
