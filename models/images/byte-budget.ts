import { onAbort } from '../../base/on-abort.js';
import { PictureError, PicturesBusyError } from './picture-error.js';

/** Most that wait for bytes at a time, by default. */
const MAX_WAITING = 256;

interface Waiting {
  bytes: number;
  begin(): void;
}

/** A number of bytes that pictures may take together. Who asks for more than are left waits for its turn, in order of arrival. */
export class ByteBudget {
  readonly total: number;
  readonly #maxWaiting: number;
  #taken = 0;
  #waiting: Waiting[] = [];

  constructor(total: number, maxWaiting = MAX_WAITING) {
    this.total = total;
    this.#maxWaiting = maxWaiting;
  }

  /** Bytes that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes bytes; the function gives them back, once.
   * @throws PictureError for more than there are at all, PicturesBusyError where too many wait, the signal's reason where it is aborted
   */
  async take(bytes: number, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (bytes > this.total)
      throw new PictureError(
        `The picture takes ${bytes} bytes while it is prepared, and pictures may take ${this.total} together.`,
      );
    if (this.#waiting.length > 0 || this.#taken + bytes > this.total) await this.#turn(bytes, signal);
    else this.#taken += bytes;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      this.#taken -= bytes;
      this.#beginNext();
    };
  }

  #turn(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.#maxWaiting)
      return Promise.reject(new PicturesBusyError('Too many pictures are waiting; try again later.'));
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, begin: resolve };
      this.#waiting.push(waiting);
      if (signal === undefined) return;
      const forget = onAbort(signal, () => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        reject(signal.reason);
        this.#beginNext();
      });
      waiting.begin = () => {
        forget();
        resolve();
      };
    });
  }

  #beginNext(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (this.#taken + first.bytes > this.total) return;
      this.#waiting.shift();
      this.#taken += first.bytes;
      first.begin();
    }
  }
}
