import type { ExecutorOptions } from '../../engine/executors/executor.js';
import type { NetworkRunner, RunnableEngine } from '../../engine/executors/portable/network-runner.js';
import { openWasmRunner } from '../../engine/executors/wasm/open-wasm-runner.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import { executorOptions } from './native-options.js';
import type { SteppedExecutor } from './paged-sequences.js';

/** A runner of the wasm executor with a step of whole batches, and nothing else. */
export class SteppedRunner implements SteppedExecutor {
  readonly vocabSize: number;

  constructor(
    readonly runner: NetworkRunner,
    readonly options: ExecutorOptions,
    vocabSize: number,
  ) {
    this.vocabSize = vocabSize;
  }

  static async open(engine: RunnableEngine, changes: Partial<ExecutorOptions> = {}): Promise<SteppedRunner> {
    const options = executorOptions(changes);
    return new SteppedRunner(await openWasmRunner(engine, options), options, engine.plan.vocabSize);
  }

  forward(batch: PackedBatch): Float32Array {
    this.runner.forward(batch);
    this.runner.head(batch.logitRows.subarray(0, batch.numLogitRows));
    return this.runner.logits();
  }
}
