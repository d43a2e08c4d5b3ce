// Where somebody is stands behind the `#`: that part of an address never leaves the browser, so no server and no proxy hears names of files.

import { ROOT, type NodePath } from '@syncline/api';

export interface Route {
  workspace: string | null;
  path: NodePath;
}

export function routeOf(hash: string): Route {
  const found = /^#\/w\/([^/]+)(?:\/(.*))?$/.exec(hash);
  if (!found?.[1]) return { workspace: null, path: ROOT };
  return { workspace: decodeURIComponent(found[1]), path: found[2] ?? ROOT };
}

export function addressOf(workspace: string, path: NodePath = ROOT): string {
  return `#/w/${encodeURIComponent(workspace)}${path === ROOT ? '' : `/${path}`}`;
}

class Router {
  route = $state.raw(routeOf(location.hash));

  constructor() {
    addEventListener('hashchange', () => (this.route = routeOf(location.hash)));
  }

  go(address: string): void {
    location.hash = address;
  }
}

export const router = new Router();
