import { MOST_ANSWER_BYTES, MOST_ANSWERS } from '../../../callbacks/infer/most-answers.js';

/**
 * The memory of one response of a member, which goes back when nobody has a use for any of its tensors: neither a step that takes one, nor
 * the client that was given one.
 */
export class Lease {
  readonly bytes: number;
  readonly #release: (() => void) | undefined;
  readonly #onDone: (lease: Lease) => void;
  /** The first is of whoever puts its tensors into their places. */
  #steps = 1;
  #clients = 0;

  /** @param onDone called when the ensemble itself has no use for it any more */
  constructor(bytes: number, release: (() => void) | undefined, onDone: (lease: Lease) => void) {
    this.bytes = bytes;
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
    this.#onDone(this);
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

/** Responses of members that steps of one request will take, and how many may wait for that. */
export class Leases {
  #count = 0;
  #bytes = 0;

  /** @param bytes that it takes beside what every request takes; 0: it is the first of its kind */
  open(bytes: number, release: (() => void) | undefined): Lease {
    this.#count++;
    this.#bytes += bytes;
    return new Lease(bytes, release, (lease) => {
      this.#count--;
      this.#bytes -= lease.bytes;
    });
  }

  get isTooMuch(): boolean {
    return this.#count > MOST_ANSWERS || this.#bytes > MOST_ANSWER_BYTES;
  }
}
