import type { Executor } from '../../engine/executors/executor.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../tools/support/tiny-network.js';
import type { TestExecutor } from './executors.js';
import { executorOptions } from './native-options.js';

/** An executor whose every limit is close, and a batch that it takes: for trying what it must refuse. */
export class SmallExecutor {
  readonly executor: Executor;
  readonly #network: TinyNetwork;

  private constructor(executor: Executor, network: TinyNetwork) {
    this.executor = executor;
    this.#network = network;
  }

  /** @param stateful its network keeps states of sequences, in 4 slots */
  static async open({ open }: TestExecutor, stateful = false): Promise<SmallExecutor> {
    const network = makeTinyNetwork({ bias: true, stateful });
    const limits = {
      maxNumTokens: 8,
      maxNumSequences: 2,
      maxLogitRows: 4,
      maxSeqLen: 40,
      numBlocks: 4,
      ...(stateful && { numStateSlots: 4 }),
    };
    return new SmallExecutor(await open(network, executorOptions(limits)), network);
  }

  /** A context of 3 tokens and a generation row after 17; both draw. */
  validBatch(): PackedBatch {
    return makeStepBatch(
      [
        { tokens: [1, 2, 3], cached: 0, blocks: [0], stateSlot: 0 },
        { tokens: Array.from({ length: 18 }, (_, i) => i), cached: 17, blocks: [1, 2], stateSlot: 1 },
      ],
      { tokensPerBlock: 16, inverseFrequencies: this.#network.inverseFrequencies, newBlocks: [0] },
    );
  }

  close(): void {
    this.executor.close();
    this.#network.remove();
  }
}
