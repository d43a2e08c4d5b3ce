// A folder with everything in it, as one ZIP file.

import type { SynclineClient } from './client.ts';
import type { FileAnswer } from './content.ts';
import { ROOT, type NodePath } from './path.ts';
import { ProblemError } from './problem.ts';

function lengthOf({ headers }: Response): number | null {
  const length = headers.get('content-length');
  return length === null ? null : Number(length);
}

function askFor(
  method: 'GET' | 'HEAD',
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  signal?: AbortSignal,
): Promise<Response> {
  if (path === ROOT) {
    return client.ask(`${method} /workspaces/{workspace}/archive`, {
      params: { workspace },
      signal,
    });
  }
  return client.ask(`${method} /workspaces/{workspace}/archive/{path}`, {
    params: { workspace, path },
    signal,
  });
}

/** Asks for a folder with everything in it. */
export async function fetchArchive(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
  signal?: AbortSignal,
): Promise<FileAnswer> {
  const response = await askFor('GET', client, workspace, path, signal);
  return { body: response.body ?? new Blob([]).stream(), size: lengthOf(response) };
}

/**
 * Returns how many bytes it will be, where that can be said before. A refusal has no words here: whoever asks for the archive itself
 * hears them.
 */
export async function fetchArchiveLength(
  client: SynclineClient,
  workspace: string,
  path: NodePath,
): Promise<number | null> {
  try {
    return lengthOf(await askFor('HEAD', client, workspace, path));
  } catch (error) {
    if (error instanceof ProblemError) return null;
    throw error;
  }
}
