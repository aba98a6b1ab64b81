import { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../infer-failure.js';
import type { SharedRegions, SharedSpan } from '../shared-memory/shared-regions.js';

/** Finds parts of regions of shared memory for the tensors of one request, and lets go of them when it is over. */
export class RegionAccess {
  readonly #regions: SharedRegions | null;
  readonly #check: () => void;
  readonly #maxBytes: number;
  readonly #spans: SharedSpan[] = [];
  #inputBytes = 0;

  /**
   * @param regions null: clients have no leave @param maxBytes of all inputs together: as many as a request may bring
   * @param check throws where this client has no leave
   */
  constructor(regions: SharedRegions | null, maxBytes: number, check: () => void) {
    this.#regions = regions;
    this.#maxBytes = maxBytes;
    this.#check = check;
  }

  /** @throws InferError, and what `check` throws */
  input(name: string, offset: number, byteSize: number): SharedSpan {
    this.#inputBytes += byteSize;
    if (this.#inputBytes > this.#maxBytes) {
      throw malformed(
        `the inputs in shared memory have more than ${this.#maxBytes} bytes, which is the limit (--max-body-bytes)`,
      );
    }
    return this.output(name, offset, byteSize);
  }

  /** @throws InferError, and what `check` throws */
  output(name: string, offset: number, byteSize: number): SharedSpan {
    if (this.#regions === null) {
      throw new InferError(
        `Unable to find shared memory region: '${name}': this server has none (--allow-shared-memory)`,
        'notFound',
      );
    }
    this.#check();
    const span = this.#regions.span(name, offset, byteSize);
    this.#spans.push(span);
    return span;
  }

  /** The request is over. */
  release(): void {
    for (const span of this.#spans.splice(0)) span.release();
  }
}
