import { expect } from 'vitest';
import type { Executor } from '../../engine/executors/executor.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import { Random } from '../../tools/support/random.js';
import { makeStepBatch, type StepSequence } from '../../tools/support/step-batch.js';
import type { TinyNetwork } from '../../tools/support/tiny-network.js';

/** The part of an executor that is used here. */
export type SteppedExecutor = Pick<Executor, 'options' | 'vocabSize' | 'forward'>;

/** A piece of work of a step: the sequence, and the length of its cache afterwards. */
export interface Piece {
  sequence: number;
  upTo: number;
}

/**
 * Feeds whole sequences through an executor in pieces, with blocks handed out in a given order, and keeps the logits
 * of every position.
 */
export class PagedSequences {
  /** [sequence][position] -> logits */
  readonly logits: Float32Array[][];
  readonly #executor: SteppedExecutor;
  readonly #network: TinyNetwork;
  readonly #window: AttentionWindow | null;
  readonly #tokens: readonly (readonly number[])[];
  readonly #freeBlocks: number[];
  readonly #blocks: number[][];
  readonly #cached: number[];

  constructor(
    executor: SteppedExecutor,
    network: TinyNetwork,
    tokens: readonly (readonly number[])[],
    freeBlocks: readonly number[],
  ) {
    this.#executor = executor;
    this.#network = network;
    this.#window = resolveWindow(executor.options);
    this.#tokens = tokens;
    this.#freeBlocks = [...freeBlocks];
    this.#blocks = tokens.map(() => []);
    this.#cached = tokens.map(() => 0);
    this.logits = tokens.map(() => []);
  }

  step(pieces: readonly Piece[]): void {
    const { tokensPerBlock } = this.#executor.options;
    const newBlocks: number[] = [];
    const rows: StepSequence[] = pieces.map(({ sequence, upTo }) => {
      const blocks = this.#blocks[sequence]!;
      const needed = Math.ceil(upTo / tokensPerBlock);
      while (blocks.length < Math.min(needed, this.#window?.maxBlocks ?? needed)) {
        const block = this.#freeBlocks.pop()!;
        blocks.push(block);
        newBlocks.push(block);
      }
      const tokens = this.#tokens[sequence]!.slice(0, upTo);
      return { tokens, cached: this.#cached[sequence]!, blocks, logits: 'all', stateSlot: sequence };
    });
    const { inverseFrequencies } = this.#network;
    const view = this.#executor.forward(
      makeStepBatch(rows, { tokensPerBlock, inverseFrequencies, newBlocks, window: this.#window }),
    );
    let row = 0;
    for (const { sequence, upTo } of pieces) {
      for (let position = this.#cached[sequence]!; position < upTo; position++, row++) {
        const { vocabSize } = this.#executor;
        this.logits[sequence]!.push(view.slice(row * vocabSize, (row + 1) * vocabSize));
      }
      this.#cached[sequence] = upTo;
    }
  }

  /** Has a sequence begin with the first blocks of another one's cache, as a prefix cache does; their tokens are the same. */
  share(sequence: number, of: number, blocks: number): void {
    this.#blocks[sequence] = this.#blocks[of]!.slice(0, blocks);
    this.#cached[sequence] = blocks * this.#executor.options.tokensPerBlock;
    this.logits[sequence] = this.logits[of]!.slice(0, this.#cached[sequence]);
  }

  /** Context phase in one piece, then one token at a time, all sequences side by side. */
  runAll(contextLengths: readonly number[]): void {
    this.step(contextLengths.map((upTo, sequence) => ({ sequence, upTo })));
    for (;;) {
      const pieces = this.#tokens.flatMap((tokens, sequence) =>
        this.#cached[sequence]! < tokens.length ? [{ sequence, upTo: this.#cached[sequence]! + 1 }] : [],
      );
      if (pieces.length === 0) return;
      this.step(pieces);
    }
  }

  /**
   * Context chunks of random sizes next to generation rows, in random order, from what is cached until all
   * sequences are done.
   * @param budget tokens of a step, at most.
   * @param drawChunk the wish for a chunk's length; it is cut to what is left.
   */
  runMixed(seed: number, budget: number, drawChunk: (random: Random) => number): void {
    const random = new Random(seed);
    const lengths = this.#tokens.map((tokens) => tokens.length);
    const done = [...this.#cached];
    while (done.some((length, s) => length < lengths[s]!)) {
      let room = budget;
      const pieces: Piece[] = [];
      for (const sequence of random.permutation(lengths.length)) {
        const left = lengths[sequence]! - done[sequence]!;
        if (left === 0 || room === 0 || random.uniform() < 0.2) continue;
        const chunk = Math.min(left, room, drawChunk(random));
        room -= chunk;
        done[sequence]! += chunk;
        pieces.push({ sequence, upTo: done[sequence]! });
      }
      if (pieces.length > 0) this.step(pieces);
    }
  }
}

/** [sequence][position] -> logits: fails naming the first place where a bit differs. */
export function expectSameLogits(actual: Float32Array[][], expected: Float32Array[][]): void {
  for (const [s, rows] of expected.entries()) {
    for (const [position, row] of rows.entries()) {
      const same = Buffer.compare(Buffer.from(row.buffer), Buffer.from(actual[s]![position]!.buffer)) === 0;
      if (!same) expect.fail(`sequence ${s} differs at position ${position}`);
    }
    expect(actual[s]!.length).toBe(rows.length);
  }
}
