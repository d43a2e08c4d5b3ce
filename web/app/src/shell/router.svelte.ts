import { PAIR, routeOf, type Route } from './route.ts';

/** Where the address leads. The code of a pairing is taken out of it, and out of the history, before anything else is done. */
function taken(): Route {
  const route = routeOf(location.hash);
  if (route.view === 'pair' && route.code !== null) history.replaceState(null, '', PAIR);
  return route;
}

class Router {
  route = $state.raw(taken());

  constructor() {
    addEventListener('hashchange', () => (this.route = taken()));
  }

  go(address: string): void {
    location.hash = address;
  }

  /** Goes elsewhere from where nobody wants to come back to. */
  goInstead(address: string): void {
    location.replace(address);
  }
}

export const router = new Router();
