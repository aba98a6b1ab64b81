import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineTensor } from '../../engine/directory/engine-directory.js';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import type { NativeEngine } from '../../engine/executors/native/native-executor.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import { equalCaches } from '../../network/cache-layers.js';
import type { ExpertRule } from '../../network/expert-rule.js';
import { NetworkBuilder } from '../../network/network-builder.js';
import type { Activation, ClampedSwiglu, NetworkPlan } from '../../network/plan.js';
import { Random } from '../../tools/support/random.js';
import { makeStepBatch } from '../../tools/support/step-batch.js';
import { executorOptions } from './native-options.js';

/** Number of tokens, and width of all rows: of no whole vectors. */
export const EXPERT_WIDTH = 22;
export const EXPERT_INNER = 18;

const HEAD = 8;
const TOKENS_PER_BLOCK = 8;

export interface ExpertSettings extends ExpertRule {
  /** At most EXPERT_WIDTH. */
  count: number;
  /** There is a bias of the choice. */
  biased?: true;
  activation?: Activation;
  /** Experts have no gate. */
  ungated?: true;
  /** Each expert has biases. */
  withBiases?: true;
  clamped?: ClampedSwiglu;
}

export interface ExpertNetwork extends NativeEngine {
  weights: Map<string, Float32Array>;
  inverseFrequencies: Float32Array;
}

/**
 * A network of one mixture of experts, after an attention that adds zeros: what a row's output is depends on
 * its token alone.
 *
 *   logits = x + mixture(x), with the first columns of x for scores
 *
 * Entries of x are quarters, which makes many scores equal, and every executor has the same scores.
 *
 * @param change changes weights: embedding, router [experts x width], choiceBias, gateUp.0 ..., down.0 ...
 */
export function makeExpertNetwork(
  folder: string,
  settings: ExpertSettings,
  change: (weights: Map<string, Float32Array>) => void = () => {},
): ExpertNetwork {
  const plan = makePlan(settings);
  const random = new Random(5);
  const weights = new Map<string, Float32Array>();
  for (const { name, rows, columns } of plan.weights) {
    const isIdentity = ['router', 'input', 'output'].includes(name);
    const drawn = () =>
      name === 'embedding' ? Math.round(4 * random.normal()) / 4 : random.normal() / Math.sqrt(columns);
    const isZero = ['qkv', 'o'].includes(name);
    const values = new Float32Array(rows * columns).map((zero, i) =>
      isZero ? zero : isIdentity ? Number(i % columns === Math.floor(i / columns)) : drawn(),
    );
    weights.set(name, values);
  }
  change(weights);
  const weightsFile = join(folder, 'weights.bin');
  const tensors: EngineTensor[] = [];
  const bytes: Buffer[] = [];
  let offset = 0;
  for (const { name, rows, columns } of plan.weights) {
    const stored = Buffer.alloc(64 * Math.ceil((4 * rows * columns) / 64));
    Buffer.from(weights.get(name)!.buffer).copy(stored);
    tensors.push({ name, dtype: 'f32', rows, columns, offset, byteLength: 4 * rows * columns });
    bytes.push(stored);
    offset += stored.length;
  }
  writeFileSync(weightsFile, Buffer.concat(bytes));
  const inverseFrequencies = Float32Array.of(1);
  return { plan, weights, tensors, weightsFile, packedFolder: folder, inverseFrequencies };
}

/** Options for batches of `rows` tokens. */
export function expertOptions(rows: number): ExecutorOptions {
  return executorOptions({
    maxNumTokens: rows,
    maxNumSequences: rows,
    maxLogitRows: rows,
    numBlocks: rows,
    tokensPerBlock: TOKENS_PER_BLOCK,
  });
}

/** A batch of tokens, each a sequence by itself, so that none attends to another. */
export function expertBatch({ inverseFrequencies }: ExpertNetwork, tokens: readonly number[]): PackedBatch {
  const sequences = tokens.map((token, block) => ({ tokens: [token], cached: 0, blocks: [block] }));
  const newBlocks = [...tokens.keys()];
  return makeStepBatch(sequences, { tokensPerBlock: TOKENS_PER_BLOCK, inverseFrequencies, newBlocks });
}

function makePlan({
  count,
  biased,
  ungated,
  withBiases,
  clamped,
  activation = clamped ? 'none' : 'silu',
  ...rule
}: ExpertSettings): NetworkPlan {
  const width = EXPERT_WIDTH;
  const net = new NetworkBuilder({
    architecture: 'experts',
    vocabSize: width,
    hiddenSize: width,
    attention: { numLayers: 1, numHeads: 1, rotaryDim: 2 },
    caches: equalCaches(1, 1, HEAD),
  });
  const matrix = (name: string, rows: number, columns = width) => net.matrix(name, [{ name, rows, columns }]);
  const vector = (name: string, columns: number) => net.vector(name, [{ name, columns }]);
  const x = net.embedding(matrix('embedding', width));
  const qkv = net.linear(x, { weight: matrix('qkv', 3 * HEAD) });
  net.addLinear(x, net.attention(qkv, 0, 1), { weight: matrix('o', width, HEAD) });
  const input = net.linear(x, { weight: matrix('input', width) });
  const scores = net.linear(x, { weight: matrix('router', count) });
  const all = Array.from({ length: count }, (_, expert) => expert);
  net.addExperts(x, input, scores, {
    gateUp: all.map((expert) => matrix(`gateUp.${expert}`, (ungated ? 1 : 2) * EXPERT_INNER)),
    down: all.map((expert) => matrix(`down.${expert}`, width, EXPERT_INNER)),
    ...rule,
    activation,
    ...(biased && { choiceBias: vector('choiceBias', count) }),
    ...(withBiases && {
      biases: {
        gateUp: all.map((expert) => vector(`gateUp.${expert}.bias`, (ungated ? 1 : 2) * EXPERT_INNER)),
        down: all.map((expert) => vector(`down.${expert}.bias`, width)),
      },
    }),
    ...(ungated && { ungated }),
    ...(clamped && { clamped }),
  });
  return net.build(net.linear(net.selectRows(x), { weight: matrix('output', width) }));
}
