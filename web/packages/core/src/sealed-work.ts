import {
  SealedWorkspace,
  type SealedActivity as FoundActivity,
  type SealedConflict as FoundConflict,
  type SealedHappened as FoundHappened,
  type SealedHit as FoundHit,
  type SealedNode as Found,
  type SealedPlaced as FoundPlaced,
} from '../dist/core.js';
import type {
  Calls,
  SealedActivity,
  SealedConflict,
  SealedConflicts,
  SealedDeleted,
  SealedFound,
  SealedHappened,
  SealedHit,
  SealedNode,
  SealedPlace,
  SealedPlaced,
  SealedShown,
  SealedStep,
  SealedVersion,
} from './protocol.ts';
import { partOf, SealedChanging } from './sealed-changing.ts';
import { SealedComparing } from './sealed-comparing.ts';

type Ask = Calls['sealedOpen']['ask'];

/** A sealed workspace in the worker: the keys are here and nowhere else, and overwritten at the end. */
export class SealedWork {
  readonly #workspace: SealedWorkspace;
  readonly changes: SealedChanging;
  readonly comparing: SealedComparing;

  constructor(workspace: SealedWorkspace) {
    this.#workspace = workspace;
    this.changes = new SealedChanging(this.#workspace);
    this.comparing = new SealedComparing(this.#workspace);
  }

  /** Opens one by what somebody has typed. */
  static open(ask: Ask): SealedWork {
    return new SealedWork(opened(ask));
  }

  said(): Calls['sealedOpen']['answer'] {
    return { name: this.#workspace.name(), generation: this.#workspace.generation() };
  }

  fold(frame: Uint8Array): Calls['sealedFold']['answer'] {
    const count = this.#workspace.fold(frame);
    return { count, head: this.#workspace.head(), mayWrite: this.#workspace.mayWrite() };
  }

  renew(envelope: Uint8Array): Calls['sealedRenew']['answer'] {
    const workspace = this.#workspace;
    const isNewer = workspace.renew(envelope);
    return { isNewer, generation: workspace.generation() };
  }

  get head(): number {
    return this.#workspace.head();
  }

  hashOf(seq: number): string | null {
    return this.#workspace.hashOf(seq) ?? null;
  }

  list(folder: string): SealedNode[] {
    return this.#workspace.list(folder).map(nodeOf);
  }

  listAll(folder: string): SealedPlaced[] {
    return this.#workspace.listAll(folder).map(placedOf);
  }

  way(folder: string): SealedNode[] {
    return this.#workspace.way(folder).map(nodeOf);
  }

  search({ query, after, limit }: Calls['sealedSearch']['ask']): SealedFound {
    const found = this.#workspace.search(query, after, limit);
    const [hits, next] = [found.hits(), found.next() ?? null];
    found.free();
    return { hits: hits.map(hitOf), next };
  }

  shown(): SealedShown {
    const found = this.#workspace.shown();
    const { commits, changes, deletions, nodes, devices, packs, packBytes, voidEntries } = found;
    found.free();
    return { commits, changes, deletions, nodes, devices, packs, packBytes, voidEntries };
  }

  deleted(): SealedDeleted[] {
    return this.#workspace.deleted().map((found) => {
      const { folders, seq, timeMs, device, deviceName, isInDeleted, isDropped } = found;
      const node = nodeOf(found.node);
      found.free();
      return { node, folders, seq, timeMs, device, deviceName, isInDeleted, isDropped };
    });
  }

  conflicts({ after, limit }: Calls['sealedConflicts']['ask']): SealedConflicts {
    const found = this.#workspace.conflicts(after, limit);
    const [list, count, next] = [found.list(), found.count(), found.next() ?? null];
    found.free();
    return { conflicts: list.map(conflictOf), count, next };
  }

  activity({
    frame,
    since,
    before,
  }: Calls['sealedActivity']['ask']): Calls['sealedActivity']['answer'] {
    const found = this.#workspace.activity(frame, since, before);
    const [list, last] = [found.list(), found.last() ?? null];
    found.free();
    return { activity: list.map(activityOf), last };
  }

  find(node: string): SealedPlace {
    const found = this.#workspace.find(node);
    const place = { node: nodeOf(found.node), folders: found.folders.map(nodeOf) };
    found.free();
    return place;
  }

  versionEntries({ node, before, limit }: Calls['sealedVersionEntries']['ask']): number[] {
    return [...this.#workspace.versionEntries(node, before, limit)];
  }

  version({ node, entry }: Calls['sealedVersion']['ask']): SealedVersion {
    const found = this.#workspace.version(node, entry.seq, entry.frame);
    const { version, name, seq, timeMs, device, deviceName, size, isDeleted, isDropped } = found;
    found.free();
    const what = { version, name: name ?? null, size: size ?? null, isDeleted, isDropped };
    return { ...what, seq, timeMs, device, deviceName };
  }

  begin({ file, entry }: Calls['sealedBegin']['ask']): number {
    const workspace = this.#workspace;
    if (entry === null) return workspace.begin(file);
    return workspace.beginVersion(file, entry.seq, entry.frame);
  }

  /** Takes what was wanted, and gives what can be read now and what is wanted next. */
  step({ reading, given, into }: Calls['sealedStep']['ask']): SealedStep {
    const workspace = this.#workspace;
    given.forEach(({ bytes, isEntry }, number) => {
      if (isEntry) workspace.takeEntry(reading, number, bytes);
      else workspace.take(reading, number, bytes);
    });
    const bytes = into
      ? into.subarray(0, workspace.readInto(reading, into))
      : (workspace.read(reading) as Uint8Array<ArrayBuffer>);
    const isOver = workspace.isOver(reading);
    const wanted = isOver ? [] : workspace.wanted(reading).map(partOf);
    return { bytes, isOver, wanted, spent: given.map(({ bytes }) => bytes) };
  }

  archive(folder: string): Calls['sealedArchive']['answer'] {
    const reading = this.#workspace.beginArchive(folder);
    return { reading, size: this.#workspace.archiveLength(reading) };
  }

  sealNotes(notes: string[]): Uint8Array<ArrayBuffer>[] {
    return notes.map((note) => this.#workspace.sealNote(note) as Uint8Array<ArrayBuffer>);
  }

  openNotes(sealed: Uint8Array[]): (string | null)[] {
    return sealed.map((note) => this.#workspace.openNote(note) ?? null);
  }

  endReading(reading: number): string | null {
    const path = this.#workspace.readPath(reading) ?? null;
    this.#workspace.end(reading);
    return path;
  }

  free(): void {
    this.comparing.free();
    this.#workspace.free();
  }
}

function opened({ id, genesis, kept, secret, device, deviceName, seed }: Ask): SealedWorkspace {
  const who = [device, deviceName, seed] as const;
  if ('keys' in kept) {
    return new SealedWorkspace(id, genesis, kept.generation, kept.keys, secret, ...who);
  }
  const { identity, envelope, seen } = kept;
  const given = [envelope, identity.public, identity.locked] as const;
  return SealedWorkspace.openOfOther(id, genesis, ...given, secret, seen, ...who);
}

function nodeOf(found: Found): SealedNode {
  const { id, name, size, modifiedMs, version, isConflict } = found;
  const kind = found.kind as SealedNode['kind'];
  found.free();
  return { id, name, kind, size: size ?? null, modifiedMs, version, isConflict };
}

function placedOf(found: FoundPlaced): SealedPlaced {
  const [node, { folder, isText, isMounted }] = [nodeOf(found.node), found];
  found.free();
  return { node, folder, isText, isMounted };
}

function conflictOf(found: FoundConflict): SealedConflict {
  const { copyFolders, originalFolders, originalId, base, seq, timeMs, device, deviceName } = found;
  const [copy, original] = [nodeOf(found.copy), found.original];
  found.free();
  return {
    ...{ copy, copyFolders, original: original ? nodeOf(original) : null, originalFolders },
    ...{ originalId, base, seq, timeMs, device, deviceName },
  };
}

function activityOf(found: FoundActivity): SealedActivity {
  const { seq, timeMs, device, deviceName, count } = found;
  const changes = found.changes.map(happenedOf);
  found.free();
  return { seq, timeMs, device, deviceName, count, changes };
}

function happenedOf(found: FoundHappened): SealedHappened {
  const { happened, oldSeq, nameNow, folders } = found;
  const node = nodeOf(found.node);
  found.free();
  return { node, happened, oldSeq: oldSeq ?? null, nameNow: nameNow ?? null, folders };
}

function hitOf(found: FoundHit): SealedHit {
  const [node, ends, folders] = [nodeOf(found.node()), found.marks(), found.way().map(nodeOf)];
  found.free();
  const marks = Array.from({ length: ends.length / 2 }, (_, index) => ({
    start: ends[2 * index] ?? 0,
    end: ends[2 * index + 1] ?? 0,
  }));
  return { ...node, marks, folders };
}
