// The moments that no test in a browser can hit: somebody writes to a file right before it is replaced, moved or removed.

import { expect, test } from 'vitest';
import { DirectoryDisk } from './disk.ts';
import { Changed, Refused, RootGone } from './ports.ts';

function missing(): DOMException {
  return new DOMException('it is not there', 'NotFoundError');
}

/** What happens right before a step of the file system. */
type Meanwhile = (step: string) => void;

class MemoryFile {
  readonly kind = 'file';
  file: File;

  constructor(
    public name: string,
    public parent: MemoryFolder,
    content = '',
    lastModified = 1,
  ) {
    this.file = new File([content], name, { lastModified });
  }

  getFile(): Promise<File> {
    this.parent.meanwhile('look');
    return Promise.resolve(this.file);
  }

  edit(content: string): void {
    this.file = new File([content], this.name, { lastModified: this.file.lastModified + 1 });
  }

  createWritable(): Promise<WritableStream<Uint8Array>> {
    const parts: Uint8Array[] = [];
    const stream = new WritableStream<Uint8Array>({
      write: (part) => void parts.push(part),
      close: () => {
        const lastModified = this.file.lastModified + 1_000;
        this.file = new File(parts as BlobPart[], this.name, { lastModified });
      },
    });
    const close = () => stream.getWriter().close();
    return Promise.resolve(Object.assign(stream, { close }));
  }

  move?: (folder: MemoryFolder, name: string) => Promise<void> = (folder, name) => {
    this.parent.meanwhile('move');
    this.parent.children.delete(this.name);
    folder.children.set(name, this);
    [this.name, this.parent] = [name, folder];
    return Promise.resolve();
  };
}

class MemoryFolder {
  readonly kind = 'directory';
  children = new Map<string, MemoryFile | MemoryFolder>();
  isGone = false;

  constructor(
    readonly canMove: boolean,
    public meanwhile: Meanwhile = () => undefined,
  ) {}

  put(name: string, content: string): MemoryFile {
    const file = new MemoryFile(name, this, content);
    if (!this.canMove) delete file.move;
    this.children.set(name, file);
    return file;
  }

  #find<Kind>(name: string, kind: string, make?: () => Kind): Promise<Kind> {
    const found = this.children.get(name) ?? make?.();
    if (!found) return Promise.reject(missing());
    const isIt = (found as { kind: string }).kind === kind;
    if (!isIt) return Promise.reject(new DOMException('another kind', 'TypeMismatchError'));
    return Promise.resolve(found as Kind);
  }

  getFileHandle(name: string, { create = false } = {}): Promise<MemoryFile> {
    return this.#find(name, 'file', create ? () => this.put(name, '') : undefined);
  }

  getDirectoryHandle(name: string, { create = false } = {}): Promise<MemoryFolder> {
    const make = () => {
      const made = new MemoryFolder(this.canMove, this.meanwhile);
      this.children.set(name, made);
      return made;
    };
    return this.#find(name, 'directory', create ? make : undefined);
  }

  removeEntry(name: string): Promise<void> {
    return this.children.delete(name) ? Promise.resolve() : Promise.reject(missing());
  }

  async *entries() {
    if (this.isGone) throw missing();
    yield* this.children.entries();
  }

  async *keys() {
    yield* this.children.keys();
  }

  /** All contents, wherever they lie. */
  async texts(): Promise<string[]> {
    const all: string[] = [];
    for (const child of this.children.values()) {
      all.push(...(child.kind === 'file' ? [await child.file.text()] : await child.texts()));
    }
    return all.sort();
  }
}

const signal = new AbortController().signal;
const stat = { size: 3, modifiedMs: 1 };

function diskOf(canMove: boolean) {
  const root = new MemoryFolder(canMove);
  const disk = new DirectoryDisk(root as unknown as FileSystemDirectoryHandle, () => 0);
  const receive = () =>
    disk.receive(
      'f',
      new Blob(['theirs']).stream() as ReadableStream<Uint8Array<ArrayBuffer>>,
      signal,
    );
  return { root, disk, receive };
}

/** Edits a file at a certain look at it, or right before it is moved. */
function editAt(root: MemoryFolder, file: MemoryFile, step: string, count: number): void {
  let seen = 0;
  const before = (one: string) => {
    if (one === step && ++seen === count) file.edit('edited');
  };
  root.meanwhile = before;
}

test.each([true, false])(
  'a file is replaced, moved aside and removed (can move: %s)',
  async (canMove) => {
    const { root, disk, receive } = diskOf(canMove);
    root.put('f', 'old');
    await disk.place(await receive(), 'f', stat);
    expect(await root.texts()).toEqual(['theirs']);
    root.put('g', 'old');
    await disk.move('g', 'g (conflict x)', stat);
    await disk.remove('g (conflict x)', { size: 3, modifiedMs: canMove ? 1 : 1_001 });
    expect(await root.texts()).toEqual(['old', 'theirs']);
    expect(root.children.has('g')).toBe(false);
    expect(root.children.has('g (conflict x)')).toBe(false);
    await disk.place(await receive(), 'new', null);
    expect(await root.texts()).toEqual(['old', 'theirs', 'theirs']);
  },
);

test.each([
  [true, 'look', 1],
  [true, 'move', 1],
  [false, 'look', 1],
  [false, 'look', 2],
] as const)(
  'an edit at the last moment is kept (can move: %s, %s %i)',
  async (canMove, step, at) => {
    for (const deed of ['place', 'remove', 'move'] as const) {
      const { root, disk, receive } = diskOf(canMove);
      const part = await receive();
      editAt(root, root.put('f', 'old'), step, at);
      const doing = {
        place: () => disk.place(part, 'f', stat),
        remove: () => disk.remove('f', stat),
        move: () => disk.move('f', 'copy', stat),
      }[deed];
      await doing().catch((error: unknown) => expect(error).toBeInstanceOf(Changed));
      expect(await root.texts(), deed).toContain('edited');
      // What was edited is no copy and no rubbish: it is looked at anew where it was.
      if (deed !== 'move') expect(root.children.has('f'), deed).toBe(true);
    }
  },
);

test('nothing that is there is replaced by what is new', async () => {
  const { root, disk, receive } = diskOf(true);
  root.put('f', 'old');
  await expect(disk.place(await receive(), 'f', null)).rejects.toThrow(Refused);
  await expect(disk.move('f', 'f', stat)).rejects.toThrow(Refused);
  await expect(disk.makeFolder('f')).rejects.toThrow(Refused);
  expect(await root.texts()).toEqual(['old', 'theirs']);
  await disk.clear();
  expect(await root.texts()).toEqual(['old']);
});

test('a file that has taken the name of an empty folder is not removed for one', async () => {
  const { root, disk } = diskOf(true);
  root.put('d', 'written meanwhile');
  await expect(disk.removeFolder('d')).rejects.toThrow(Changed);
  expect(await root.texts()).toEqual(['written meanwhile']);
});

test('a file is moved into another folder, and not over what is there', async () => {
  for (const canMove of [true, false]) {
    const { root, disk } = diskOf(canMove);
    const inside = await root.getDirectoryHandle('d', { create: true });
    root.put('f', 'old');
    inside.put('taken', 'other');
    await expect(disk.move('f', 'd/taken', stat)).rejects.toThrow(Refused);
    await expect(disk.move('f', 'nowhere/f', stat)).rejects.toThrow(Changed);
    await disk.move('f', 'd/g', stat);
    expect([...root.children.keys(), ...inside.children.keys()]).toEqual(['d', 'taken', 'g']);
    expect(await root.texts()).toEqual(['old', 'other']);
  }
});

test('a folder that is gone has no files that are absent, and one that cannot be read is left out', async () => {
  const { root, disk } = diskOf(true);
  root.put('f', 'old');
  const inside = await root.getDirectoryHandle('d', { create: true });
  inside.put('g', 'x');
  inside.isGone = true;
  const { found, skipped } = await disk.scan(signal);
  expect([...found.keys()]).toEqual(['f']);
  expect([...skipped]).toEqual([['d', 'unreadable']]);
  root.isGone = true;
  await expect(disk.scan(signal)).rejects.toThrow(RootGone);
});

test('where what comes cannot be written aside at all, it is not left unread: it would hold a connection', async () => {
  const { root, disk } = diskOf(true);
  root.put('.syncline-trash', 'no folder');
  let isCancelled = false;
  const content = new ReadableStream<Uint8Array<ArrayBuffer>>({
    cancel: () => void (isCancelled = true),
  });
  await expect(disk.receive('f', content, signal)).rejects.toThrow('another kind');
  expect(isCancelled).toBe(true);
});

test('what somebody saves under a name while a file comes there stays, and what came goes', async () => {
  const copying = diskOf(false);
  const part = await copying.receive();
  let looks = 0;
  copying.root.meanwhile = (step) => {
    // It is empty at the first look, and then comes the last one before it is exchanged.
    const file = copying.root.children.get('new');
    if (step === 'look' && ++looks === 2 && file?.kind === 'file') file.edit('saved');
  };
  await expect(copying.disk.place(part, 'new', null)).rejects.toThrow(Changed);
  expect(await copying.root.texts()).toEqual(['saved', 'theirs']);

  const moving = diskOf(true);
  const other = await moving.receive();
  moving.root.put('f', 'old');
  // An editor that saves by another file moves that to the name which is free for a moment.
  moving.root.meanwhile = (step) => {
    if (step === 'move') queueMicrotask(() => moving.root.put('f', 'saved'));
  };
  await expect(moving.disk.place(other, 'f', stat)).rejects.toThrow(Refused);
  expect(await moving.root.texts()).toEqual(['old', 'saved', 'theirs']);
});

test('where a file cannot be copied to its place, nothing is left there that would be taken for one', async () => {
  const { root, disk } = diskOf(false);
  const part = await disk.receive(
    'f',
    new ReadableStream<Uint8Array<ArrayBuffer>>({ start: (stream) => stream.close() }),
    signal,
  );
  const broken = {
    ...part,
    file: Object.assign(new File([], part.file.name), {
      stream: () => new ReadableStream({ start: (stream) => stream.error(new Error('full')) }),
    }),
  };
  await expect(disk.place(broken, 'new', null)).rejects.toThrow('full');
  expect(root.children.has('new')).toBe(false);
});

test('what comes has the ending of its place, so that it is not looked at for harm when it is put there', async () => {
  const { disk } = diskOf(true);
  const content = () => new Blob(['theirs']).stream() as ReadableStream<Uint8Array<ArrayBuffer>>;
  for (const [name, ending] of [
    ['a.tar.gz', '.gz'],
    ['README', ''],
    ['.profile', ''],
  ] as const) {
    const part = await disk.receive(name, content(), signal);
    expect(part.file.name).toMatch(new RegExp(`^part-[a-z0-9]+${ending}$`));
    await part.drop();
  }
});
