import type { SealedPack as Pack, SealedPart as Part, SealedWorkspace } from '../dist/core.js';
import { SealedWorkspace as Sealed } from '../dist/core.js';
import type {
  Calls,
  SealedChange,
  SealedDone,
  SealedPack,
  SealedPart,
  SealedSketch,
} from './protocol.ts';
import { BlobSource } from './source.ts';

/** How much of a file is cut at once. */
const PIECE_LENGTH = 1024 * 1024;

/** After so much of a file others have their turn, whether a pack is full or not. */
const TURN_LENGTH = 16 * PIECE_LENGTH;

/** A file on its way into packs. */
interface Reading {
  source: BlobSource;
  at: number;
}

/** What changes in a sealed workspace, in the worker. */
export class SealedChanging {
  readonly #workspace: SealedWorkspace;
  readonly #files = new Map<number, Reading>();

  constructor(workspace: SealedWorkspace) {
    this.#workspace = workspace;
  }

  begin(change: SealedChange): number {
    const workspace = this.#workspace;
    switch (change.kind) {
      case 'folder':
        return workspace.makeFolder(change.folder, change.name);
      case 'remove': {
        const versions = Float64Array.from(change.nodes, ({ version }) => version);
        const ids = change.nodes.map(({ id }) => id);
        return workspace.remove(ids, versions);
      }
      case 'move': {
        const versions = Float64Array.from(change.nodes, ({ version }) => version);
        const ids = change.nodes.map(({ id }) => id);
        const names = change.nodes.map(({ name }) => name);
        return workspace.moveAll(ids, versions, names, change.folder);
      }
      case 'copy': {
        const ids = change.nodes.map(({ id }) => id);
        const names = change.nodes.map(({ name }) => name);
        return workspace.copyAll(ids, names, change.folder);
      }
      case 'removeOne':
        return workspace.removeOne(change.node, change.version);
      case 'mark':
        return workspace.mark(change.node, change.version, change.original, change.base);
      case 'bringBack':
        return workspace.bringBack(change.nodes);
      case 'revert':
        return workspace.revert(change.node, change.entry.seq, change.entry.frame);
      case 'decide': {
        const { node, version, originalVersion, keep, name } = change;
        return workspace.decide(node, version, originalVersion, keep, name);
      }
      case 'restore':
        return workspace.restore(change.deed);
    }
  }

  /** Begins a file, and looks at samples of it. */
  put({
    folder,
    name,
    over,
    isBeside,
    file,
    kept,
  }: Calls['sealedPut']['ask']): Calls['sealedPut']['answer'] {
    const workspace = this.#workspace;
    const source = new BlobSource(file);
    const { size, lastModified } = file;
    const seen = over ? `${over.id}.${String(over.version)}` : undefined;
    const deed = workspace.put(folder, name, seen, isBeside, size, lastModified);
    this.#files.set(deed, { source, at: 0 });
    if (kept) {
      const ids = kept.packs.map(({ id }) => id);
      const lengths = Float64Array.from(kept.packs, ({ length }) => length);
      workspace.resume(deed, kept.mark, ids, lengths);
    }
    const sampleLength = Sealed.sampleLength();
    for (;;) {
      const place = workspace.samplePlace(deed);
      if (place === undefined) {
        return { deed, mark: workspace.packsMark(), base: workspace.putBase(deed) ?? null };
      }
      const sample = new Uint8Array(Math.min(sampleLength, size - place));
      source.readAt(place, sample);
      workspace.takeSample(deed, sample);
    }
  }

  putSketch({ deed, sketch }: Calls['sealedPutSketch']['ask']): void {
    this.#workspace.putSketch(deed, sketch);
  }

  takeSketch(deed: number): SealedSketch | null {
    const found = this.#workspace.takeSketch(deed);
    if (!found) return null;
    const { name, bytes } = found;
    found.free();
    return { name, bytes: bytes as Uint8Array<ArrayBuffer> };
  }

  known({ deed, given }: Calls['sealedKnown']['ask']): SealedPart[] {
    given.forEach(({ bytes, isEntry }, number) =>
      this.#workspace.takeKnown(deed, number, bytes, isEntry),
    );
    return this.#workspace.wantedKnown(deed).map(partOf);
  }

  pack(deed: number): Calls['sealedPack']['answer'] {
    const workspace = this.#workspace;
    const reading = this.#files.get(deed);
    if (!reading) throw new Error('no file is read by that number');
    const { source } = reading;
    const end = Math.min(source.size, reading.at + TURN_LENGTH);
    const packs: SealedPack[] = [];
    while (packs.length === 0 && reading.at < end) {
      const piece = new Uint8Array(Math.min(PIECE_LENGTH, end - reading.at));
      source.readAt(reading.at, piece);
      workspace.push(deed, piece);
      reading.at += piece.length;
      for (let pack = workspace.takePack(deed); pack; pack = workspace.takePack(deed)) {
        packs.push(packOf(pack));
      }
    }
    const isOver = reading.at === source.size;
    if (isOver) packs.push(...workspace.endPut(deed).map(packOf));
    return { packs, done: reading.at, isOver };
  }

  propose(deed: number): Uint8Array<ArrayBuffer> | null {
    const commit = this.#workspace.propose(deed, Date.now());
    return (commit as Uint8Array<ArrayBuffer> | undefined) ?? null;
  }

  settle(deed: number): SealedDone {
    const found = this.#workspace.settle(deed);
    const { isOver, node, version, isBeside, isPartial } = found;
    found.free();
    return { isOver, node: node ?? null, version: version ?? null, isBeside, isPartial };
  }

  forget(deed: number): void {
    this.#files.delete(deed);
    this.#workspace.forget(deed);
  }
}

function packOf(found: Pack): SealedPack {
  const { id, bytes } = found;
  found.free();
  return { id, bytes: bytes as Uint8Array<ArrayBuffer> };
}

export function partOf(found: Part): SealedPart {
  const { pack, start, end, inlineSeq } = found;
  found.free();
  return { pack, start, end, inlineSeq: inlineSeq ?? null };
}
