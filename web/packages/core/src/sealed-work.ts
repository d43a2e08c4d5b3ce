import { SealedWorkspace, type SealedNode as Found } from '../dist/core.js';
import type { Calls, SealedNode, SealedShown, SealedStep } from './protocol.ts';
import { partOf, SealedChanging } from './sealed-changing.ts';

type Ask = Calls['sealedOpen']['ask'];

/** A sealed workspace in the worker: the keys are here and nowhere else, and overwritten at the end. */
export class SealedWork {
  readonly #workspace: SealedWorkspace;
  readonly changes: SealedChanging;

  constructor(ask: Ask) {
    this.#workspace = opened(ask);
    this.changes = new SealedChanging(this.#workspace);
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
    return { isNewer, generation: workspace.generation(), head: workspace.head() };
  }

  list(folder: string): SealedNode[] {
    return this.#workspace.list(folder).map(nodeOf);
  }

  way(folder: string): SealedNode[] {
    return this.#workspace.way(folder).map(nodeOf);
  }

  shown(): SealedShown {
    const found = this.#workspace.shown();
    const { commits, changes, deletions, nodes, devices, packs, packBytes, voidEntries } = found;
    found.free();
    return { commits, changes, deletions, nodes, devices, packs, packBytes, voidEntries };
  }

  begin(file: string): number {
    return this.#workspace.begin(file);
  }

  /** Takes what was wanted, and gives what can be read now and what is wanted next. */
  step({ reading, given }: Calls['sealedStep']['ask']): SealedStep {
    const workspace = this.#workspace;
    given.forEach(({ bytes, isEntry }, number) => {
      if (isEntry) workspace.takeEntry(reading, number, bytes);
      else workspace.take(reading, number, bytes);
    });
    const bytes = workspace.read(reading) as Uint8Array<ArrayBuffer>;
    const isOver = workspace.isOver(reading);
    return { bytes, isOver, wanted: isOver ? [] : workspace.wanted(reading).map(partOf) };
  }

  endReading(reading: number): void {
    this.#workspace.end(reading);
  }

  free(): void {
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
