import { MAX_ANSWER_BYTES, MAX_ANSWERS } from '../../../callbacks/infer/answer-limits.js';
import type { InferTerms } from '../../../callbacks/infer/infer-types.js';

/**
 * The memory of one response of a member, which is released when none of its tensors is in use: neither by a
 * step that takes one, nor by the client that was given one.
 */
export class Lease {
  readonly #release: (() => void) | undefined;
  readonly #onDone: () => void;
  /** The first is held while its tensors are put into their places. */
  #steps = 1;
  #clients = 0;

  /** @param onDone called when the ensemble itself has no use for it any more */
  constructor(release: (() => void) | undefined, onDone: () => void) {
    this.#release = release;
    this.#onDone = onDone;
  }

  /** One of its tensors will be taken so often. */
  use(count: number): void {
    this.#steps += count;
  }

  /** One who took a tensor needs it no more. */
  drop(): void {
    this.#steps--;
    if (this.#steps > 0) return;
    this.#onDone();
    this.#free();
  }

  /** The client has one of its tensors. */
  lend(): void {
    this.#clients++;
  }

  giveBack(): void {
    this.#clients--;
    this.#free();
  }

  #free(): void {
    if (this.#steps === 0 && this.#clients === 0) this.#release?.();
  }
}

/** Responses of members that steps of one request will take, how many may wait for that, and the memory that the request accounts for. */
export class Leases {
  readonly #terms: InferTerms | undefined;
  #count = 0;
  /** In addition to what every request takes. */
  #further = 0;
  #kept = 0;
  #isClosed = false;

  constructor(terms: InferTerms | undefined) {
    this.#terms = terms;
  }

  /** @param isFirst it is the first of its step, as every request has one @throws InferError where there is no memory for it */
  open(bytes: number, isFirst: boolean, release: (() => void) | undefined): Lease {
    this.#terms?.keep(bytes);
    this.#kept += bytes;
    const further = isFirst ? 0 : bytes;
    this.#count++;
    this.#further += further;
    return new Lease(release, () => {
      this.#count--;
      this.#further -= further;
      this.#letGo(bytes);
    });
  }

  get isTooMuch(): boolean {
    return this.#count > MAX_ANSWERS || this.#further > MAX_ANSWER_BYTES;
  }

  /** The request is over: what is left of it waits for nothing. */
  close(): void {
    this.#letGo(this.#kept);
    this.#isClosed = true;
  }

  #letGo(bytes: number): void {
    if (this.#isClosed || bytes === 0) return;
    this.#kept -= bytes;
    this.#terms?.letGo(bytes);
  }
}
