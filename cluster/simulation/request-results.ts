import type { ClusterRequestResult } from './cluster-types.js';

/** What became of many requests, by their numbers: a column for each value, 40 bytes a request. */
export class RequestResults implements Iterable<ClusterRequestResult> {
  #length = 0;
  #workers = new Int32Array(64);
  #firstTokenMs = new Float64Array(64);
  #lastTokenMs = new Float64Array(64);
  #promptTokens = new Int32Array(64);
  #cachedTokens = new Int32Array(64);
  #attempts = new Int32Array(64);

  get length(): number {
    return this.#length;
  }

  /** Milliseconds of each request. */
  get firstTokenMs(): Float64Array {
    return this.#firstTokenMs.subarray(0, this.#length);
  }

  get lastTokenMs(): Float64Array {
    return this.#lastTokenMs.subarray(0, this.#length);
  }

  /** Adds a request of which nothing is known but its prompt. Returns its number. */
  add(promptTokens: number): number {
    if (this.#length === this.#workers.length) this.#grow();
    this.#length += 1;
    const request = this.#length - 1;
    this.set(request, {
      ...{ worker: -1, firstTokenMs: Number.NaN, lastTokenMs: Number.NaN },
      ...{ promptTokens, cachedTokens: 0, attempts: 0 },
    });
    return request;
  }

  set(request: number, result: ClusterRequestResult): void {
    this.#workers[request] = result.worker;
    this.#firstTokenMs[request] = result.firstTokenMs;
    this.#lastTokenMs[request] = result.lastTokenMs;
    this.#promptTokens[request] = result.promptTokens;
    this.#cachedTokens[request] = result.cachedTokens;
    this.#attempts[request] = result.attempts;
  }

  at(request: number): ClusterRequestResult {
    return {
      worker: this.#workers[request]!,
      firstTokenMs: this.#firstTokenMs[request]!,
      lastTokenMs: this.#lastTokenMs[request]!,
      promptTokens: this.#promptTokens[request]!,
      cachedTokens: this.#cachedTokens[request]!,
      attempts: this.#attempts[request]!,
    };
  }

  *[Symbol.iterator](): Generator<ClusterRequestResult> {
    for (let request = 0; request < this.#length; request += 1) yield this.at(request);
  }

  #grow(): void {
    const most = 2 * this.#workers.length;
    const longer = <Column extends Int32Array | Float64Array>(column: Column, empty: Column): Column => {
      empty.set(column);
      return empty;
    };
    this.#workers = longer(this.#workers, new Int32Array(most));
    this.#firstTokenMs = longer(this.#firstTokenMs, new Float64Array(most));
    this.#lastTokenMs = longer(this.#lastTokenMs, new Float64Array(most));
    this.#promptTokens = longer(this.#promptTokens, new Int32Array(most));
    this.#cachedTokens = longer(this.#cachedTokens, new Int32Array(most));
    this.#attempts = longer(this.#attempts, new Int32Array(most));
  }
}
