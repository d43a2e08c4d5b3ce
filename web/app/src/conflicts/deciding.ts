// Deciding a conflict, and taking the decision back. What is not kept stays among the versions, or where deleted things are.

import {
  parentOf,
  ProblemError,
  ROOT,
  type Conflict,
  type Node,
  type Resolution,
  type SynclineClient,
} from '@syncline/api';

export type Keep = Resolution['keep'];

/** Decides; `name` is what the copy is called from then on where both are kept. Returns what stands then. */
export function decide(
  client: SynclineClient,
  workspace: string,
  { copy, original }: Conflict,
  keep: Keep,
  name?: string,
): Promise<Node> {
  return client.call('POST /workspaces/{workspace}/resolve', {
    params: { workspace },
    body: {
      node: copy.id,
      version: copy.version,
      original_version: original?.version ?? null,
      keep,
      name: name === undefined ? null : encodeURIComponent(name),
    },
  });
}

/** Makes it a conflict again. What somebody has done since is not touched. */
export async function takeBack(
  client: SynclineClient,
  workspace: string,
  { copy, original, original_id, base }: Conflict,
  keep: Keep,
  stands: Node,
): Promise<void> {
  const params = { workspace };
  const restore = (body: { node: string; version?: number }) =>
    client.call('POST /workspaces/{workspace}/restore', { params, body });
  let back: Node;
  if (keep === 'both') {
    // Its folder may have moved since, and its name may be no text.
    const folder = parentOf(stands.path);
    const name = copy.path.slice(copy.path.lastIndexOf('/') + 1);
    const there = folder === ROOT ? name : `${folder}/${name}`;
    back =
      stands.path === there
        ? stands
        : await client.move(workspace, stands.path, there, { ifMatch: stands.etag });
  } else {
    if (keep === 'copy' && original) {
      const now = await client.node(workspace, stands.path);
      if (now?.etag !== stands.etag)
        throw ProblemError.here('precondition_failed', stands.path, 412);
      back = await restore({ node: copy.id });
      await restore({ node: original.id, version: original.version });
    } else {
      back = await restore({ node: copy.id });
    }
  }
  await client.call('POST /workspaces/{workspace}/conflicts', {
    params,
    body: { node: back.id, version: back.version, original: original_id, base },
  });
}
