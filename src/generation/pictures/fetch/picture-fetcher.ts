import { connect } from 'node:net';
import { onAbort } from '../../../../base/on-abort.js';
import { PicturesBusyError } from '../../../../models/images/picture-error.js';
import { InvalidRequestError } from '../../../errors/request-errors.js';
import type { FileLoading, NamedFile, PictureSources } from '../picture-files.js';
import { fetchPicture, type Network, NotFetchedError, pictureUrl } from './fetch-picture.js';
import { resolveHost } from './resolve-host.js';

/** Pictures that are fetched at a time, for all requests together. */
const MAX_AT_A_TIME = 64;
/** Part of them that one of several API keys may use. */
const KEY_SHARE = 1 / 2;
/** Milliseconds for all pictures of a request together. */
const TIME_LIMIT_MS = 5_000;
const HTTPS_PORT = 443;

export interface FetcherOptions {
  network: Network;
  timeLimitMs: number;
  /** Returns true where several API keys share it. */
  isShared: () => boolean;
}

const INTERNET: Network = {
  resolve: resolveHost,
  dial: (host) => connect({ host, port: HTTPS_PORT, autoSelectFamily: false }),
};

/** Fetches pictures by their addresses, a bounded number at a time: see fetchPicture. */
export class PictureFetcher {
  readonly #options: FetcherOptions;
  /** Pictures that are being fetched, by the name of their key. */
  readonly #running = new Map<string, number>();

  constructor({
    network = INTERNET,
    timeLimitMs = TIME_LIMIT_MS,
    isShared = () => false,
  }: Partial<FetcherOptions> = {}) {
    this.#options = { network, timeLimitMs, isShared };
  }

  /** Pictures that are being fetched now. */
  get running(): number {
    return [...this.#running.values()].reduce((sum, count) => sum + count, 0);
  }

  /** The way of one API key; '' where there are none. */
  of(key: string): NonNullable<PictureSources['fetched']> {
    return (named, loading) => this.#fetchAll(key, named, loading);
  }

  /** Fetches all pictures of a request at a time. @throws InvalidRequestError; PicturesBusyError; what `take` throws; the signal's reason */
  async #fetchAll(
    key: string,
    named: readonly NamedFile[],
    { take, signal }: FileLoading,
  ): Promise<Uint8Array[]> {
    const urls = named.map((one) => ({ ...one, url: inRequestsWords(one, () => pictureUrl(one.name)) }));
    const release = this.#enter(key, named.length);
    const end = new AbortController();
    const { timeLimitMs, network } = this.#options;
    const [slow] = named;
    const late = () =>
      end.abort(wordsOf(slow!, new NotFetchedError(`was not read within ${timeLimitMs / 1000} s`)));
    const timer = setTimeout(late, timeLimitMs);
    const forget = signal === undefined ? () => {} : onAbort(signal, () => end.abort(signal.reason));
    try {
      const all = urls.map((one) =>
        fetchPicture(one.url, network, { take, signal: end.signal }).catch((error: unknown) => {
          // The others end with the first that fails, for its reason.
          end.abort(wordsOf(one, error));
          throw end.signal.reason;
        }),
      );
      await Promise.allSettled(all);
      return await Promise.all(all);
    } finally {
      clearTimeout(timer);
      forget();
      release();
    }
  }

  /** @throws PicturesBusyError where that many more may not be fetched now */
  #enter(key: string, count: number): () => void {
    const own = this.#running.get(key) ?? 0;
    const most = this.#options.isShared() ? MAX_AT_A_TIME * KEY_SHARE : MAX_AT_A_TIME;
    if (this.running + count > MAX_AT_A_TIME || own + count > most)
      throw new PicturesBusyError('Too many pictures are fetched at present; try again later.');
    this.#running.set(key, own + count);
    return () => {
      const left = this.#running.get(key)! - count;
      if (left === 0) this.#running.delete(key);
      else this.#running.set(key, left);
    };
  }
}

function wordsOf({ place }: NamedFile, error: unknown): unknown {
  if (!(error instanceof NotFetchedError)) return error;
  return new InvalidRequestError(`'${place}' ${error.message}.`, place, 'invalid_image_url');
}

function inRequestsWords<T>(named: NamedFile, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw wordsOf(named, error);
  }
}
