// Who is signed in here. The token rests in the storage of the tab, or of the browser where somebody wants to stay signed in.

import { SynclineClient } from '@syncline/api';
import { isKnownSealed } from '../sealed/seen.ts';
import { deviceName } from './device-name.ts';
import { proveLogin } from './prove.ts';
import { countingSent, countReceived, Traffic } from './traffic.ts';

const KEY = 'syncline.session';
const TRAFFIC_KEY = 'syncline.traffic';

interface Kept {
  token: string;
  account: string;
}

function read(storage: Storage): Kept | null {
  const text = storage.getItem(KEY);
  return text === null ? null : (JSON.parse(text) as Kept);
}

type Found = Awaited<ReturnType<typeof proveLogin>>;

export interface SigningIn {
  user: string;
  password: string;
  code?: string | undefined;
  /** Whether the browser keeps the token when the tab is closed. */
  isKept: boolean;
}

class Session {
  account = $state<string | null>(null);
  /** Whether the server ended it, or another tab. */
  hasEnded = $state(false);
  readonly client: SynclineClient;
  /** Where the session is kept; nothing where nobody is signed in. */
  #place: Storage | null;
  /** What was sent and received since somebody signed in. */
  readonly traffic = new Traffic(TRAFFIC_KEY, () => this.#place);

  constructor() {
    const places = [localStorage, sessionStorage];
    this.#place = places.find((place) => place.getItem(KEY) !== null) ?? null;
    const kept = this.#place && read(this.#place);
    this.account = kept?.account ?? null;
    this.client = new SynclineClient({
      token: kept?.token ?? null,
      onSignedOut: () => this.#forget(true),
      isSealed: isKnownSealed,
      fetch: countingSent((sent) => this.traffic.note(sent, 0)),
    });
    countReceived((received) => this.traffic.note(0, received));
    addEventListener('pagehide', () => this.traffic.write());
    addEventListener('storage', (event) => {
      if (event.key === KEY && event.newValue === null) this.#forget(true);
    });
  }

  /** Whether somebody stays signed in when the tab is closed. */
  get isKept(): boolean {
    return this.#place === localStorage;
  }

  async signIn({ user, password, code, isKept }: SigningIn): Promise<void> {
    const device_name = deviceName(navigator.userAgent);
    const login = { user, password, device_name, ...(code && { code }) };
    this.enter(await proveLogin(this.client, login), isKept);
  }

  /** Takes what the server has answered to who has proved who they are. */
  enter(found: Found, isKept: boolean): void {
    this.client.token = found.token;
    const kept: Kept = { token: found.token, account: found.account };
    this.#place = isKept ? localStorage : sessionStorage;
    this.#place.setItem(KEY, JSON.stringify(kept));
    this.hasEnded = false;
    this.account = found.account;
  }

  /** Ends the session at the server, and here also where the server is away. */
  async signOut(): Promise<void> {
    const left = location.hash;
    await this.client.logout().catch(() => undefined);
    this.#forget(false);
    // Who has gone elsewhere while the server was asked stays there.
    if (location.hash === left) location.hash = '#/';
  }

  #forget(hasEnded: boolean): void {
    for (const place of [localStorage, sessionStorage]) {
      for (const key of [KEY, TRAFFIC_KEY]) place.removeItem(key);
    }
    this.#place = null;
    this.traffic.forget();
    this.client.token = null;
    this.hasEnded = hasEnded;
    this.account = null;
  }
}

export const session = new Session();
