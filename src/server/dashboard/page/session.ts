import { Emitter } from './emitter.js';

/** A store of text in the browser: sessionStorage, which ends with the tab. */
export type KeyStore = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const STORED = 'skein-api-key';

/** Paths that only callers with a key may ask, where keys are used. */
const OF_KEYS = /^(v1|stats)\b/;

interface SessionEvents {
  /** Emitted when the server wants a key; `wasRefused`: the key that was sent is not valid. */
  locked: { wasRefused: boolean };
  /** Emitted when there is a key that has not been refused. */
  unlocked: undefined;
}

/** Sends the page's requests to the server, with the API key where one was entered. */
export class Session extends Emitter<SessionEvents> {
  readonly #base: string;
  readonly #store: KeyStore | null;
  #key: string | null;
  #isOpen = false;

  /**
   * @param base the page's own address: paths are relative to it, so that a proxy's prefix stays.
   * @param store keeps the key; null: in memory only.
   */
  constructor(base: string, store: KeyStore | null) {
    super();
    this.#base = base;
    this.#store = store;
    this.#key = store?.getItem(STORED) ?? null;
  }

  /** True where the server has answered without a key. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Asks for the missing key, since some action needs it. */
  askForKey(): void {
    this.emit('locked', { wasRefused: false });
  }

  unlock(key: string): void {
    this.#key = key;
    try {
      this.#store?.setItem(STORED, key);
    } catch {
      // A full store: the key holds until the page is left.
    }
    this.emit('unlocked', undefined);
  }

  /** Sends a request. @param path without a slash in front, as v1/models. A 401 is returned like any other answer. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const key = this.#key;
    const headers = new Headers(init.headers);
    if (key !== null) headers.set('authorization', `Bearer ${key}`);
    const response = await fetch(new URL(path, this.#base), { ...init, headers, cache: 'no-store' });
    if (key === null) this.#isOpen = response.status !== 401 && OF_KEYS.test(path);
    // A key entered meanwhile may be valid.
    if (response.status === 401 && key === this.#key) this.#lock(key !== null);
    return response;
  }

  #lock(wasRefused: boolean): void {
    this.#key = null;
    this.#store?.removeItem(STORED);
    this.emit('locked', { wasRefused });
  }

  /** Sends a POST with a body of JSON. */
  post(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = { 'content-type': 'application/json', ...init.headers };
    return this.fetch(path, { ...init, method: 'POST', headers, body: JSON.stringify(body) });
  }
}
