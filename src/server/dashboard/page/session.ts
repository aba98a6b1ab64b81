import { Emitter } from './emitter.js';

/** Where a browser keeps text; sessionStorage, which ends with the tab. */
export type KeyStore = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const STORED = 'skein-api-key';

interface SessionEvents {
  /** The server wants a key; `wasRefused`: one was sent, and it is none of the server's. */
  locked: { wasRefused: boolean };
  /** There is a key now that has not been refused. */
  unlocked: undefined;
}

/** How the page asks the server: with the API key, where one was entered. */
export class Session extends Emitter<SessionEvents> {
  readonly #base: string;
  readonly #store: KeyStore | null;
  #key: string | null;

  /**
   * @param base the page's own address: paths are relative to it, so that a proxy's prefix stays.
   * @param store null keeps the key in memory only.
   */
  constructor(base: string, store: KeyStore | null) {
    super();
    this.#base = base;
    this.#store = store;
    this.#key = store?.getItem(STORED) ?? null;
  }

  /** Somebody wants something that needs the key which is not there. */
  askForKey(): void {
    this.emit('locked', { wasRefused: false });
  }

  unlock(key: string): void {
    this.#key = key;
    this.#store?.setItem(STORED, key);
    this.emit('unlocked', undefined);
  }

  /** @param path without a slash in front, as v1/models. An answer of 401 is returned as any other. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const key = this.#key;
    const headers = new Headers(init.headers);
    if (key !== null) headers.set('authorization', `Bearer ${key}`);
    const response = await fetch(new URL(path, this.#base), { ...init, headers, cache: 'no-store' });
    // A key entered meanwhile may be right.
    if (response.status === 401 && key === this.#key) this.#lock(key !== null);
    return response;
  }

  #lock(wasRefused: boolean): void {
    this.#key = null;
    this.#store?.removeItem(STORED);
    this.emit('locked', { wasRefused });
  }

  /** POST of JSON. */
  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { 'content-type': 'application/json', ...init.headers };
    return this.fetch(path, { ...init, method: 'POST', headers, body: JSON.stringify(body) });
  }
}
