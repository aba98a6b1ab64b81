import type { ExecutorOptions } from '../../engine/executors/executor.js';
import type { NetworkRunner, RunnableEngine } from '../../engine/executors/portable/network-runner.js';

/** A NetworkRunner that computes nothing: its logits are what a test writes into them. */
export class IdleRunner implements NetworkRunner {
  readonly name = 'wasm';
  readonly device = 'nothing';
  readonly #logits: Float32Array;
  readonly #width: number;
  #rows = 0;

  constructor({ plan }: RunnableEngine, { maxLogitRows }: ExecutorOptions) {
    this.#width = plan.outputWidth;
    this.#logits = new Float32Array(maxLogitRows * plan.outputWidth);
  }

  forward(): void {}

  head(rows: Int32Array): void {
    this.#rows = rows.length;
  }

  logits(): Float32Array {
    return this.#logits.subarray(0, this.#rows * this.#width);
  }

  copyBlocks(): void {}

  areFinite(): boolean {
    return true;
  }

  memory() {
    return { weightBytes: 0, kvCacheBytes: 0, workspaceBytes: this.#logits.byteLength };
  }

  close(): void {}
}
