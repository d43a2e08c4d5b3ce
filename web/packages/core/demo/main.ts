// Hands the core to tests in a browser.
import { Core, CoreError, StagMeter } from '../src/index.ts';
import { bytesOf } from './samples.ts';

export interface Demo {
  Core: typeof Core;
  CoreError: typeof CoreError;
  StagMeter: typeof StagMeter;
  bytesOf: typeof bytesOf;
}

Object.assign(globalThis, { demo: { Core, CoreError, StagMeter, bytesOf } satisfies Demo });
