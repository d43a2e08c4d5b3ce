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

/** Reads what is kept; nothing where something else was written. */
function keptIn(text: string | null): Kept | null {
  try {
    const found = JSON.parse(text ?? 'null') as Partial<Kept> | null;
    const { token, account } = found ?? {};
    return typeof token === 'string' && typeof account === 'string' ? { token, account } : null;
  } catch {
    return null;
  }
}

const read = (storage: Storage) => keptIn(storage.getItem(KEY));

/** Ends a session at the server. Nobody waits for that: where the server is away, it goes on until it is ended from another device. */
function endAtServer(token: string): void {
  void new SynclineClient({ token }).logout().catch(() => undefined);
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
    // What the tab has comes first: the browser may keep the session of somebody else.
    const places = [sessionStorage, localStorage];
    this.#place = places.find((place) => read(place) !== null) ?? null;
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
    addEventListener('storage', ({ key, storageArea, newValue }) => {
      if (key === KEY && storageArea === this.#place) this.#heed(newValue);
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
    // What was counted is of who was signed in before.
    if (read(this.#place)?.account !== found.account) this.#place.removeItem(TRAFFIC_KEY);
    this.#place.setItem(KEY, JSON.stringify(kept));
    this.hasEnded = false;
    this.account = found.account;
  }

  /** Ends the session here at once, with that in which the same person has signed in again beside it, and tells the server. */
  signOut(): void {
    const kept = this.#place && read(this.#place);
    const beside = kept?.account === this.account ? kept?.token : null;
    const tokens = new Set([this.client.token, beside]);
    this.#forget(false);
    for (const token of tokens) if (token) endAtServer(token);
    location.hash = '#/';
  }

  /** Another tab has changed what the browser keeps. */
  #heed(text: string | null): void {
    // Whoever signs in once more is the same person, and this tab goes on.
    if (keptIn(text)?.account === this.account) return;
    const { token } = this.client;
    this.#forget(true);
    // Nobody has it any more.
    if (token) endAtServer(token);
  }

  /** Forgets the session, and what the browser keeps of it; another session that it keeps by now goes with it only on purpose. */
  #forget(hasEnded: boolean): void {
    const kept = this.#place && read(this.#place);
    const isOwn = kept?.token === this.client.token;
    if (kept?.account === this.account && (isOwn || !hasEnded)) {
      for (const key of [KEY, TRAFFIC_KEY]) this.#place?.removeItem(key);
    }
    this.#place = null;
    this.traffic.forget();
    this.client.token = null;
    this.hasEnded = hasEnded;
    this.account = null;
  }
}

export const session = new Session();
