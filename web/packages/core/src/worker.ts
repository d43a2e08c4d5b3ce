// A worker: loads the module once, and answers calls one after the other.

import load, { pairingName, type InitOutput } from '../dist/core.js';
import address from '../dist/core_bg.wasm?url';
import { BlockWork } from './block-work.ts';
import { chunk } from './chunk.ts';
import { DeltaWork } from './delta-work.ts';
import { failedOf } from './error.ts';
import { MakingWork } from './making-work.ts';
import { GuestWork, HostWork } from './pairing-work.ts';
import { NewPasswordWork, ProofWork } from './proof-work.ts';
import type { Call, Calls, Reply } from './protocol.ts';
import { SealedWork } from './sealed-work.ts';

interface Scope {
  onmessage: ((event: MessageEvent<Call>) => void) | null;
  postMessage(reply: Reply, transfer?: Transferable[]): void;
}

const scope = globalThis as unknown as Scope;
/** What this session is about. */
let work:
  | DeltaWork
  | BlockWork
  | ProofWork
  | NewPasswordWork
  | SealedWork
  | MakingWork
  | GuestWork
  | HostWork
  | undefined;
let loading: Promise<InitOutput> | undefined;

/** Loads the module; a browser that lacks what it needs says so by an error of its own. */
async function loaded(): Promise<InitOutput> {
  try {
    loading ??= load({ module_or_path: address });
    return await loading;
  } catch (error) {
    // The next call tries again.
    loading = undefined;
    const message = error instanceof Error ? error.message : String(error);
    const isUnable = typeof WebAssembly !== 'object' || error instanceof WebAssembly.CompileError;
    throw Object.assign(new Error(message), { code: isUnable ? 'unsupported' : 'read' });
  }
}

function onProgress(done: number): void {
  scope.postMessage({ kind: 'progress', done });
}

function onPart(bytes: Uint8Array<ArrayBuffer>): void {
  scope.postMessage({ kind: 'part', bytes }, [bytes.buffer]);
}

async function answer(call: Call): Promise<[Calls[Call['name']]['answer'], Transferable[]]> {
  const { memory } = await loaded();
  switch (call.name) {
    case 'chunk': {
      const list = await chunk(call.ask, onProgress);
      return [list, [list.lengths.buffer, list.ids.buffer]];
    }
    case 'deltaBegin':
      work = new DeltaWork(call.ask, null, onProgress, onPart);
      return [await work.begin(), []];
    case 'deltaOfKept':
      work = new DeltaWork(call.ask, call.ask.old, onProgress, onPart);
      return [await work.ofKept(), []];
    case 'deltaTold':
    case 'deltaList':
    case 'deltaSend':
    case 'deltaWanted':
    case 'deltaKept':
      return [answerDelta(call), []];
    case 'blockBegin':
      work = new BlockWork(call.ask, onProgress, onPart);
      return [work.begin(), []];
    case 'blockReply':
      return [begun(BlockWork).reply(call.ask.message), []];
    case 'blockAnswer':
      return [begun(BlockWork).takeAnswer(call.ask.message), []];
    case 'proofBegin':
      work = new ProofWork(call.ask);
      return [work.messages(), []];
    case 'proofFinish':
      return [begun(ProofWork).finish(call.ask), []];
    case 'passwordBegin':
      work = new NewPasswordWork(call.ask);
      return [work.message(), []];
    case 'passwordFinish':
      return [begun(NewPasswordWork).finish(call.ask.answer), []];
    case 'sealedOpen':
      work = SealedWork.open(call.ask);
      return [work.said(), []];
    case 'sealedMake':
      work = new MakingWork(call.ask);
      return [work.made(), []];
    case 'sealedMade':
      work = begun(MakingWork).open(call.ask);
      return [work.said(), []];
    case 'pairingName':
      return [pairingName(call.ask.code), []];
    case 'pairingJoin':
      work = new GuestWork(call.ask);
      return [work.said(), []];
    case 'pairingAccept':
      work = begun(GuestWork).accept(call.ask.grant);
      return [work.said(), []];
    case 'pairingOpen':
      work = new HostWork(call.ask);
      return [work.said(), []];
    case 'pairingAsk':
      return [begun(HostWork).ask(call.ask.request), []];
    case 'pairingGrant':
      return [begun(HostWork).grant(), []];
    case 'end':
      work?.free();
      work = undefined;
      return [memory.buffer.byteLength, []];
    default:
      return answerSealed(call);
  }
}

/** Answers a call about a delta that was begun. */
function answerDelta(
  call: Extract<
    Call,
    { name: 'deltaTold' | 'deltaList' | 'deltaSend' | 'deltaWanted' | 'deltaKept' }
  >,
): Calls[(typeof call)['name']]['answer'] {
  const delta = begun(DeltaWork);
  switch (call.name) {
    case 'deltaTold':
      return delta.told(call.ask.message);
    case 'deltaList':
      return delta.list(call.ask.list);
    case 'deltaSend':
      return delta.send();
    case 'deltaWanted':
      return delta.wanted(call.ask.answer);
    case 'deltaKept':
      return delta.kept();
  }
}

/** Answers a call about the sealed workspace that is open. */
function answerSealed(
  call: Extract<Call, { name: `sealed${string}` }>,
): [Calls[Call['name']]['answer'], Transferable[]] {
  switch (call.name) {
    case 'sealedOpen':
    case 'sealedMake':
    case 'sealedMade':
      throw new Error('it is open already');
    case 'sealedRenew':
      return [begun(SealedWork).renew(call.ask.envelope), []];
    case 'sealedFold':
      return [begun(SealedWork).fold(call.ask.frame), []];
    case 'sealedHead':
      return [begun(SealedWork).head, []];
    case 'sealedHash':
      return [begun(SealedWork).hashOf(call.ask.seq), []];
    case 'sealedList':
      return [begun(SealedWork).list(call.ask.folder), []];
    case 'sealedListAll':
      return [begun(SealedWork).listAll(call.ask.folder), []];
    case 'sealedCompare':
      return [begun(SealedWork).comparing.begin(call.ask), []];
    case 'sealedCompareOn':
      return [begun(SealedWork).comparing.goOn(call.ask.comparison), []];
    case 'sealedCompareEnd':
      begun(SealedWork).comparing.end(call.ask.comparison);
      return [null, []];
    case 'sealedWay':
      return [begun(SealedWork).way(call.ask.folder), []];
    case 'sealedSearch':
      return [begun(SealedWork).search(call.ask), []];
    case 'sealedShown':
      return [begun(SealedWork).shown(), []];
    case 'sealedDeleted':
      return [begun(SealedWork).deleted(), []];
    case 'sealedConflicts':
      return [begun(SealedWork).conflicts(call.ask), []];
    case 'sealedActivity':
      return [begun(SealedWork).activity(call.ask), []];
    case 'sealedFind':
      return [begun(SealedWork).find(call.ask.node), []];
    case 'sealedVersionEntries':
      return [begun(SealedWork).versionEntries(call.ask), []];
    case 'sealedVersion':
      return [begun(SealedWork).version(call.ask), []];
    case 'sealedBegin':
      return [begun(SealedWork).begin(call.ask), []];
    case 'sealedStep': {
      const step = begun(SealedWork).step(call.ask);
      return [step, [step.bytes.buffer, ...step.spent.map(({ buffer }) => buffer)]];
    }
    case 'sealedArchive':
      return [begun(SealedWork).archive(call.ask.folder), []];
    case 'sealedEnd':
      return [begun(SealedWork).endReading(call.ask.reading), []];
    case 'sealedNotes':
      return [begun(SealedWork).sealNotes(call.ask.notes), []];
    case 'sealedNotesOpen':
      return [begun(SealedWork).openNotes(call.ask.sealed), []];
    default:
      return answerChanging(call);
  }
}

/** Answers a call about what somebody changes in it. */
function answerChanging(
  call: Extract<
    Call,
    {
      name:
        | 'sealedChange'
        | 'sealedPut'
        | 'sealedPutSketch'
        | 'sealedTakeSketch'
        | 'sealedKnown'
        | 'sealedPack'
        | 'sealedPropose'
        | 'sealedSettle'
        | 'sealedForget';
    }
  >,
): [Calls[Call['name']]['answer'], Transferable[]] {
  switch (call.name) {
    case 'sealedChange':
      return [begun(SealedWork).changes.begin(call.ask), []];
    case 'sealedPut':
      return [begun(SealedWork).changes.put(call.ask), []];
    case 'sealedPutSketch':
      begun(SealedWork).changes.putSketch(call.ask);
      return [null, []];
    case 'sealedTakeSketch': {
      const sketch = begun(SealedWork).changes.takeSketch(call.ask.deed);
      return [sketch, sketch ? [sketch.bytes.buffer] : []];
    }
    case 'sealedKnown':
      return [begun(SealedWork).changes.known(call.ask), []];
    case 'sealedPack': {
      const step = begun(SealedWork).changes.pack(call.ask.deed);
      return [step, step.packs.map(({ bytes }) => bytes.buffer)];
    }
    case 'sealedPropose':
      return [begun(SealedWork).changes.propose(call.ask.deed), []];
    case 'sealedSettle':
      return [begun(SealedWork).changes.settle(call.ask.deed), []];
    case 'sealedForget':
      begun(SealedWork).changes.forget(call.ask.deed);
      return [null, []];
  }
}

function begun<Work>(kind: abstract new (...words: never[]) => Work): Work {
  if (!(work instanceof kind)) throw new Error('nothing of the kind was begun');
  return work;
}

scope.onmessage = ({ data }) => {
  answer(data).then(
    ([answer, transfer]) => scope.postMessage({ kind: 'answer', answer }, transfer),
    (error: unknown) => scope.postMessage({ kind: 'failed', failed: failedOf(error) }),
  );
};
