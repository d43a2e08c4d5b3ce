import type { Core } from '@syncline/core';

let loading: Promise<Core> | undefined;

/** The core is loaded when it is wanted for the first time. */
export async function loadCore(): Promise<Core> {
  loading ??= import('@syncline/core').then(({ Core }) => new Core());
  try {
    return await loading;
  } catch (error) {
    loading = undefined;
    throw error;
  }
}
