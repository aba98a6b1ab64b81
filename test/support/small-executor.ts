import { NativeExecutor } from '../../engine/native/native-executor.js';
import type { PackedBatch } from '../../engine/packed-batch.js';
import { executorOptions } from './native-options.js';
import { makeStepBatch } from './step-batch.js';
import { makeTinyNetwork } from './tiny-network.js';

/** An executor whose every limit is close, and a batch that it takes: for trying what it must refuse. */
export class SmallExecutor {
  readonly #network = makeTinyNetwork({ bias: true });
  readonly executor = new NativeExecutor(
    this.#network,
    executorOptions({ maxNumTokens: 8, maxNumSequences: 2, maxLogitRows: 4, maxSeqLen: 40, numBlocks: 4 }),
  );

  /** A context of 3 tokens and a generation row behind 17; both draw. */
  validBatch(): PackedBatch {
    return makeStepBatch(
      [
        { tokens: [1, 2, 3], cached: 0, blocks: [0] },
        { tokens: Array.from({ length: 18 }, (_, i) => i), cached: 17, blocks: [1, 2] },
      ],
      { tokensPerBlock: 16, inverseFrequencies: this.#network.inverseFrequencies, newBlocks: [0] },
    );
  }

  close(): void {
    this.executor.close();
    this.#network.remove();
  }
}
