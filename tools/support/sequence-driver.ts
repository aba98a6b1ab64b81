import type { Executor } from '../../engine/executors/executor.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import { longestTable, resolveWindow } from '../../kvcache/kv-cache-options.js';
import type { ModelConfig } from '../../models/model-config.js';
import { ropeFrequencies } from '../../network/rope.js';

/**
 * Runs one sequence at a time straight on an executor: no loop, no scheduler, so that a difference to the reference
 * can only come from network, kernels or weights. Blocks are handed out in order 0, 1, 2 ...
 */
export class SequenceDriver {
  readonly #executor: Executor;
  readonly #config: ModelConfig;
  /** Slot of the adapter of its sequences; -1: none. */
  readonly #adapterSlot: number;
  #length = 0;
  #finalLength = 0;

  constructor(executor: Executor, config: ModelConfig, adapterSlot = -1) {
    this.#executor = executor;
    this.#config = config;
    this.#adapterSlot = adapterSlot;
  }

  /** Begins a new sequence; RoPE frequencies that depend on the length are those of `finalLength`. */
  begin(finalLength: number): void {
    this.#length = 0;
    this.#finalLength = finalLength;
  }

  /** Appends `tokens` in one forward call. Returns the logits of `rows` (indices into `tokens`), copied. */
  append(tokens: readonly number[], rows: readonly number[]): Float32Array[] {
    const logits = this.#executor.forward(this.#batch(tokens, rows));
    this.#length += tokens.length;
    const width = this.#executor.vocabSize;
    return rows.map((_, row) => logits.slice(row * width, (row + 1) * width));
  }

  /**
   * Logits at `positions` (ascending) of a sequence that is fed in chunks of at most `chunk` tokens.
   */
  logitsAt(tokens: readonly number[], positions: readonly number[], chunk: number): Float32Array[] {
    const found: Float32Array[] = [];
    for (let start = 0; start < tokens.length; start += chunk) {
      const part = tokens.slice(start, start + chunk);
      const rows = positions.filter((p) => p >= start && p < start + part.length).map((p) => p - start);
      found.push(...this.append(part, rows));
    }
    return found;
  }

  /** Greedy tokens after `prompt`, one generation step each. */
  greedy(prompt: readonly number[], count: number, chunk: number): number[] {
    return this.greedySteps(prompt, count, chunk).map(argmax);
  }

  /** The logits of which the greedy tokens after `prompt` are taken. */
  greedySteps(prompt: readonly number[], count: number, chunk: number): Float32Array[] {
    this.begin(prompt.length + count);
    const steps = this.logitsAt(prompt, [prompt.length - 1], chunk);
    while (steps.length < count) steps.push(...this.append([argmax(steps.at(-1)!)], [0]));
    return steps;
  }

  #batch(tokens: readonly number[], rows: readonly number[]): PackedBatch {
    const { tokensPerBlock, maxSeqLen } = this.#executor.options;
    const window = resolveWindow(this.#executor.options);
    const maxBlocks = longestTable(maxSeqLen, tokensPerBlock, window);
    const positions = Int32Array.from(tokens, (_, i) => this.#length + i);
    const contextLength = this.#length + tokens.length;
    const blocksOf = (length: number) => Math.min(Math.ceil(length / tokensPerBlock), maxBlocks);
    const firstNew = blocksOf(this.#length);
    const numNew = blocksOf(contextLength) - firstNew;
    const slotOf = (position: number) => {
      const block = Math.floor(position / tokensPerBlock);
      return (window?.entryOf(block) ?? block) * tokensPerBlock + (position % tokensPerBlock);
    };
    const { inverseFrequencies, scale } = ropeFrequencies(this.#config.rope, this.#finalLength);
    return {
      numTokens: tokens.length,
      numSequences: 1,
      numLogitRows: rows.length,
      numNewBlocks: numNew,
      maxBlocks,
      tokenIds: Int32Array.from(tokens),
      positions,
      slots: positions.map(slotOf),
      queryStart: Int32Array.of(0, tokens.length),
      contextLength: Int32Array.of(contextLength),
      blockTables: Int32Array.from({ length: maxBlocks }, (_, i) => (i < blocksOf(contextLength) ? i : 0)),
      logitRows: Int32Array.from(rows),
      newBlocks: Int32Array.from({ length: numNew }, (_, i) => firstNew + i),
      ropeRows: Int32Array.of(0),
      stateSlots: Int32Array.of(0),
      stateDrafts: Int32Array.of(0),
      stateReplays: Int32Array.of(0),
      snapshotStart: Int32Array.of(0, 0),
      snapshotRows: new Int32Array(0),
      snapshotSlots: new Int32Array(0),
      ropeFrequencies: inverseFrequencies,
      ropeScales: Float32Array.of(scale),
      adapterSlots: this.#adapterSlot < 0 ? null : Int32Array.of(this.#adapterSlot),
    };
  }
}

/** The lowest of the greatest entries. */
export function argmax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}
