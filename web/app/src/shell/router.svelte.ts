import { routeOf } from './route.ts';

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
