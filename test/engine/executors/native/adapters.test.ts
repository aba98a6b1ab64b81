import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import {
  type AdapterWeights,
  adapterOf,
  type ModuleLayer,
} from '../../../../models/adapters/adapter-weights.js';
import { MODULE_IDS, type ModuleId } from '../../../../models/adapters/module-ids.js';
import { Random } from '../../../../tools/support/random.js';
import { makeStepBatch, type StepSequence } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { bestInstructionSet, executorOptions, instructionSets } from '../../../support/native-options.js';

const MAX_RANK = 64;
const TOKENS_PER_BLOCK = 16;
const SHAPE = { hiddenSize: 48, intermediateSize: 80, numHeads: 4, numKvHeads: 2, headDim: 16, numLayers: 2 };
/** Superblocks need widths that 256 divides. */
const WIDE = { ...SHAPE, hiddenSize: 256, intermediateSize: 256, headDim: 64, numLayers: 1 };
const shapeOf = (precision: string) => (precision === 'mixed' ? WIDE : SHAPE);
function widthsOf({ hiddenSize: x, intermediateSize: inner, ...shape }: typeof SHAPE) {
  const [q, kv] = [shape.numHeads * shape.headDim, shape.numKvHeads * shape.headDim];
  return [
    [MODULE_IDS.attn_qkv, x, q + 2 * kv],
    [MODULE_IDS.attn_q, x, q],
    [MODULE_IDS.attn_k, x, kv],
    [MODULE_IDS.attn_v, x, kv],
    [MODULE_IDS.attn_dense, q, x],
    [MODULE_IDS.mlp_gate_up, x, 2 * inner],
    [MODULE_IDS.mlp_h_to_4h, x, inner],
    [MODULE_IDS.mlp_gate, x, inner],
    [MODULE_IDS.mlp_4h_to_h, inner, x],
  ] as const satisfies readonly (readonly [ModuleId, number, number])[];
}

/** An adapter of about half of the modules of each layer, each of a rank of its own. */
function randomAdapter(seed: number, shape = SHAPE): AdapterWeights {
  const random = new Random(seed);
  const layers: ModuleLayer[] = [];
  for (let layer = 0; layer < shape.numLayers; layer++) {
    for (const [module, columns, rows] of widthsOf(shape)) {
      if (random.uniform() < 0.5) continue;
      const rank = 1 + Math.floor(random.uniform() * (random.uniform() < 0.2 ? MAX_RANK : 9));
      const values = (count: number) => Float32Array.from({ length: count }, () => 0.2 * random.normal());
      layers.push({ layer, module, rank, a: values(rank * columns), b: values(rows * rank) });
    }
  }
  return adapterOf(layers, null);
}

const SEEDS = [5, 6, 7, 8];
const ADAPTERS = SEEDS.map((seed) => randomAdapter(seed));
const WIDE_ADAPTERS = SEEDS.map((seed) => randomAdapter(seed, WIDE));
const tokensOf = (seed: number, length: number) => {
  const random = new Random(seed);
  return Array.from({ length }, () => Math.floor(131 * random.uniform()));
};

/**
 * Sequences of all kinds: prompts, generation steps after one, with adapters and without. Each has its own
 * blocks.
 */
const SEQUENCES: readonly StepSequence[] = [
  [40, 0],
  [7, 0],
  [23, 1],
  [60, 1],
  [1, undefined],
  [50, 2],
  [16, undefined],
  [3, 3],
  [33, 0],
].map(([length, adapter], i) => ({
  tokens: tokensOf(i, length!),
  cached: 0,
  blocks: Array.from({ length: 4 }, (_, block) => 4 * i + block),
  ...(adapter === undefined ? {} : { adapter }),
}));

let networks: Map<string, TinyNetwork>;
beforeAll(() => {
  networks = new Map(
    (['f32', 'bf16', 'int8', 'int4', 'mixed'] as const).map((precision) => [
      precision,
      makeTinyNetwork({ ...shapeOf(precision), precision }),
    ]),
  );
});
afterAll(() => {
  for (const network of networks.values()) network.remove();
});

function open(
  precision: string,
  { instructionSet = bestInstructionSet, threads = 2, maxAdapters = ADAPTERS.length } = {},
): Executor {
  const options = executorOptions({
    instructionSet,
    threads,
    numBlocks: 4 * SEQUENCES.length,
    tokensPerBlock: TOKENS_PER_BLOCK,
  });
  const executor = new NativeExecutor(networks.get(precision)!, {
    ...options,
    maxAdapters,
    maxLoraRank: MAX_RANK,
  });
  for (const [slot, adapter] of (precision === 'mixed' ? WIDE_ADAPTERS : ADAPTERS).entries())
    if (maxAdapters > 0) executor.adapters!.put(slot, adapter);
  return executor;
}

function forward(executor: Executor, sequences: readonly StepSequence[]): Float32Array[] {
  const isWide = executor.promptRowWidth === WIDE.hiddenSize;
  const { inverseFrequencies } = networks.get(isWide ? 'mixed' : 'f32')!;
  const batch = makeStepBatch(sequences, { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies });
  const logits = executor.forward(batch);
  const { vocabSize } = executor;
  return sequences.map((_, i) => logits.slice(i * vocabSize, (i + 1) * vocabSize));
}

/** The logits of a sequence's last token, its tokens fed one chunk after the other. */
function alone(executor: Executor, sequence: StepSequence, chunk = sequence.tokens.length): Float32Array {
  let logits: Float32Array | undefined;
  for (let cached = 0; cached < sequence.tokens.length; cached += chunk) {
    const tokens = sequence.tokens.slice(0, cached + chunk);
    logits = forward(executor, [{ ...sequence, tokens, cached }])[0];
  }
  return logits!;
}

describe.each(['f32', 'bf16', 'int8', 'int4', 'mixed'])('adapters on weights of %s', (precision) => {
  it.each(instructionSets)(
    'give each row the same bits alone and in a crowd, in chunks and on any threads, on %s',
    (instructionSet) => {
      const executor = open(precision, { instructionSet });
      const together = forward(executor, SEQUENCES);
      for (const [i, sequence] of SEQUENCES.entries()) {
        expect(alone(executor, sequence), `sequence ${i} alone`).toEqual(together[i]);
        expect(alone(executor, sequence, 5), `sequence ${i} in chunks`).toEqual(together[i]);
      }
      executor.close();
      for (const threads of [1, 3]) {
        const other = open(precision, { instructionSet, threads });
        expect(forward(other, SEQUENCES.toReversed()).toReversed()).toEqual(together);
        other.close();
      }
    },
  );

  it('leave rows without one as they are in an executor that takes none, and change all others', () => {
    const [executor, plain] = [open(precision), open(precision, { maxAdapters: 0 })];
    const [with_, without] = [executor, plain].map((one, i) =>
      forward(one, i === 0 ? SEQUENCES : SEQUENCES.map(({ adapter: _, ...sequence }) => sequence)),
    );
    for (const [i, { adapter }] of SEQUENCES.entries()) {
      if (adapter === undefined) expect(with_![i]).toEqual(without![i]);
      else expect(with_![i]).not.toEqual(without![i]);
    }
    expect(plain.adapters).toBeUndefined();
    executor.close();
    plain.close();
  });
});

describe('a slot', () => {
  it('holds what it was given last', () => {
    const executor = open('f32');
    const sequence = { ...SEQUENCES[0]!, adapter: 0 };
    const before = alone(executor, sequence);
    const other = alone(executor, { ...sequence, adapter: 1 });
    const bytes = executor.memory().weightBytes;
    for (let i = 0; i < 3; i++) {
      executor.adapters!.put(0, ADAPTERS[1]!);
      expect(alone(executor, sequence)).toEqual(other);
      executor.adapters!.clear(0);
      expect(executor.memory().weightBytes).toBeLessThan(bytes);
      executor.adapters!.put(0, ADAPTERS[0]!);
      expect(alone(executor, sequence)).toEqual(before);
      expect(executor.memory().weightBytes).toBe(bytes);
    }
    executor.close();
  });

  it('that is empty, or not there, is refused by name in a batch, and the executor goes on', () => {
    const executor = open('f32');
    executor.adapters!.clear(2);
    const asked = (adapter: number) => () => alone(executor, { ...SEQUENCES[0]!, adapter });
    expect(asked(2)).toThrow('adapterSlots[0] is 2, but there is no adapter in this slot.');
    expect(asked(4)).toThrow('adapterSlots[0] is 4, but it must be in [-1, 4).');
    expect(asked(-2)).toThrow('adapterSlots[0] is -2, but it must be in [-1, 4).');
    expect(asked(1)).not.toThrow();
    executor.close();
  });

  it('takes no adapter that does not fit, and keeps the one that it has', () => {
    const executor = open('f32');
    const before = alone(executor, SEQUENCES[0]!);
    const module = (change: Partial<ModuleLayer>): ModuleLayer => ({
      layer: 0,
      module: MODULE_IDS.attn_q,
      rank: 2,
      a: new Float32Array(96),
      b: new Float32Array(128),
      ...change,
    });
    const put =
      (change: Partial<ModuleLayer>, slot = 0) =>
      () =>
        executor.adapters!.put(slot, adapterOf([module(change)], null));
    expect(put({ a: new Float32Array(95) })).toThrow('a has 95 elements, but 96 are needed.');
    expect(put({ b: new Float32Array(129) })).toThrow('b has 129 elements, but 128 are needed.');
    expect(put({ rank: 65 })).toThrow('rank is 65, but it must be in [1, 64].');
    expect(put({ layer: 2 })).toThrow('This network has no attn_q in layer 2 that an adapter could change.');
    expect(put({ module: MODULE_IDS.moe_gate })).toThrow('This network has no moe_gate in layer 0');
    expect(put({}, 4)).toThrow('slot is 4, but this executor has 4 slots.');
    expect(() => executor.adapters!.clear(-1)).toThrow('slot is -1, but this executor has 4 slots.');
    expect(alone(executor, SEQUENCES[0]!)).toEqual(before);
    executor.close();
  });

  it('is not changed while a step runs, nor after the end', () => {
    const executor = open('f32');
    executor.close();
    expect(() => executor.adapters!.put(0, ADAPTERS[0]!)).toThrow('The executor is closed.');
  });
});
