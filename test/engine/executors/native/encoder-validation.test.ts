import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../../../engine/building/engine.js';
import {
  ENCODER_TOKENS_PER_BLOCK,
  EncoderBatch,
  encoderBlocks,
} from '../../../../engine/encoder/encoder-batch.js';
import { ropeTableOf } from '../../../../engine/encoder/load-encoder.js';
import type { ExecutorOptions } from '../../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { NetworkPlan } from '../../../../network/plan.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { TestEngines, tinyModelPath } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../../support/made-embedders.js';
import { at, set } from '../../../support/spoil.js';

const LIMITS = { maxNumTokens: 64, maxNumSequences: 4, maxSeqLen: 64 };
const OPTIONS: ExecutorOptions = {
  threads: 1,
  ...LIMITS,
  maxLogitRows: 4,
  numBlocks: encoderBlocks(LIMITS),
  tokensPerBlock: ENCODER_TOKENS_PER_BLOCK,
  kvDtype: 'f32',
};

const engines = new TestEngines();
let engine: Engine;
let executor: NativeExecutor;

function open(plan: NetworkPlan, options: Partial<ExecutorOptions> = {}): NativeExecutor {
  const { weightsFile, directory, manifest } = engine;
  return new NativeExecutor(
    { plan, weightsFile, tensors: manifest.tensors, packedFolder: directory },
    { ...OPTIONS, ...options },
  );
}

beforeAll(async () => {
  engine = await engines.get(tinyModelPath('bert-mean'), 'f32');
  executor = open(engine.plan);
});
afterAll(() => {
  executor.close();
  engines.remove();
});

function batch(): EncoderBatch {
  const made = new EncoderBatch(
    LIMITS,
    engine.manifest.config.encoder!,
    ropeTableOf(engine.manifest.config, LIMITS.maxNumSequences),
  );
  const sequence = (length: number) => ({ tokenIds: new Int32Array(length).fill(5), tokenTypes: null });
  made.pack([sequence(3), sequence(4)]);
  return made;
}

describe('a batch of an encoder that is wrong', () => {
  it.each([
    ['a position without a row', at('positions', 2, 64), /positions\[2\] is 64, .*\[0, 64\)/],
    ['a type without a row', at('tokenTypes', 4, 2), /tokenTypes\[4\] is 2, .*\[0, 2\)/],
    ['no types', set('tokenTypes', undefined), /tokenTypes has 0 entries, but 7 are needed/],
    [
      'fewer rows than sequences',
      set('numLogitRows', 1),
      /numLogitRows is 1, but of each of the 2 sequences/,
    ],
    [
      'a part of a sequence',
      (target: EncoderBatch) => {
        target.contextLength[1] = 5;
        for (let t = 3; t < 7; t++) target.slots[t]!++;
      },
      /contextLength\[1\] is 5, but its 4 tokens must be the whole sequence/,
    ],
  ])('%s', (_, spoil, message) => {
    const spoilt = batch();
    spoil(spoilt);
    expect(() => executor.forward(spoilt)).toThrow(message);
    expect(executor.forward(batch()).every(Number.isFinite)).toBe(true);
  });

  it('asks for logits', () => {
    const rows = {
      of: 'logitRows',
      first: 0,
      count: 1,
      logits: new Float32Array(150),
      logProbs: null,
    } as const;
    const asking = Object.assign(batch(), { returnedRows: [rows] });
    expect(() => executor.forward(asking)).toThrow(/this network has none over a vocabulary/);
  });
});

it('refuses to sample from an encoder', () => {
  const [sampling, output] = [makeSamplingBatch([{}, {}]), makeSamplingOutput(2)];
  expect(() => executor.step(batch(), sampling, output)).toThrow(
    /no logits over a vocabulary to sample from/,
  );
  executor.forward(batch());
  expect(() => executor.sample(sampling, output)).toThrow(/no logits over a vocabulary to sample from/);
});

describe('a plan of an encoder that does not fit', () => {
  const changed = (change: (plan: NetworkPlan) => void) => {
    const plan = structuredClone(engine.plan);
    change(plan);
    return plan;
  };

  it.each<[string, (plan: NetworkPlan) => void, RegExp]>([
    [
      'a width that is not what comes out',
      (plan) => set('outputWidth', 47)(plan),
      /must be \[logit rows x 47\]/,
    ],
    [
      'a bias of another width',
      (plan) => set('bias', 'layers.0.qkv.bias')(plan.ops.find(({ op }) => op === 'layerNorm')!),
      /\(layerNorm\) of the plan: bias layers.0.qkv.bias must be a vector of 48/,
    ],
    [
      'a table before there is a sum',
      (plan) => {
        const [embedding, types] = plan.ops.splice(0, 2);
        plan.ops.unshift(types!, embedding!);
      },
      /\(addEmbedding\) of the plan: output reads value 0 before any op writes it/,
    ],
    [
      'an unknown lookup',
      (plan) => set('by', 'colour')(plan.ops.find(({ op }) => op === 'addEmbedding')!),
      /by is "colour", but it must be one of positions, tokenTypes/,
    ],
    [
      'layers of which only some attend both ways',
      (plan) => set('mask', { window: 3 })(plan.ops.find(({ op }) => op === 'attention')!),
      /\(attention\) of the plan: attends up to each token's own position, but others of the plan both ways/,
    ],
  ])('%s', (_, change, message) => {
    expect(() => open(changed(change))).toThrow(message);
  });

  it('has a window', () => {
    expect(() => open(engine.plan, { maxAttentionWindow: 32 })).toThrow(
      /maxAttentionWindow is 32, but a network that takes whole sequences has no window of the engine/,
    );
  });
});

describe('a plan whose scores depend on distances', () => {
  const folder = temporaryFolder('skein-distances');
  type Ops = NetworkPlan['ops'];

  async function opening(name: string, change: (plan: NetworkPlan) => void, options = {}) {
    const made = madeEmbedder(name);
    const own = await engines.get(writeMadeEmbedder(join(folder, name), made), 'f32');
    const plan = structuredClone(own.plan);
    change(plan);
    const { weightsFile, directory, manifest } = own;
    const parts = { plan, weightsFile, tensors: manifest.tensors, packedFolder: directory };
    return () => new NativeExecutor(parts, { ...OPTIONS, ...options }).close();
  }
  const find = <K extends Ops[number]['op']>(plan: NetworkPlan, op: K) =>
    plan.ops.find((one): one is Extract<Ops[number], { op: K }> => one.op === op)!;

  it.each<[string, string, (plan: NetworkPlan) => void, RegExp]>([
    [
      'a table that nothing makes',
      'deberta-v3',
      (plan) => set('relative', 2)(find(plan, 'attention')),
      /\(attention\) of the plan: relative names table 2, but ops before it make 2\.$/,
    ],
    [
      'tables out of turn',
      'deberta-v3',
      (plan) => set('table', 1)(find(plan, 'distanceProducts')),
      /\(distanceProducts\) of the plan: table is 1, but the next one is 0\.$/,
    ],
    [
      'heads beyond its rows',
      'deberta-v3',
      (plan) => set('keys', 70)(find(plan, 'distanceProducts')),
      /32 columns from column 70 on must lie in value 2, which is \[distances x 96\]\.$/,
    ],
    [
      'rows behind the first of a step',
      'deberta-v3',
      (plan) => plan.ops.splice(8, 0, ...plan.ops.splice(0, 1)),
      /before any op writes it/,
    ],
    [
      'an op over distances behind those of steps',
      'deberta-v3',
      (plan) => plan.ops.splice(7, 0, { ...find(plan, 'distanceRows') }),
      /\(distanceRows\) of the plan: is run once, and so must stand before all that each step runs\.$/,
    ],
    [
      'a bucket that is none',
      'deberta-v3',
      (plan) => set('0', 16)(plan.attention.distances!.buckets),
      /^a bucket of distances must be between 0 and 15, but it is 16\.$/,
    ],
    [
      'buckets on one side more',
      'mpnet',
      (plan) => plan.attention.distances!.buckets.pop(),
      /^The distances with a bucket must be as many on both sides of 0\.$/,
    ],
    [
      'biases of another number of buckets',
      'mpnet',
      (plan) => set('count', 31)(plan.attention.distances!),
      /between 0 and 30|must be a vector of 124/,
    ],
    [
      'a window beside them',
      'mpnet',
      (plan) => set('mask', { bothWays: true, window: 4 })(find(plan, 'attention')),
      /scores depend on distances only where it attends both ways, without a window and a softCap\.$/,
    ],
  ])('is refused with %s', async (_, name, change, message) => {
    expect(await opening(name, change)).toThrow(message);
  });

  it('is refused with keys that are rounded, and runs as it is', async () => {
    expect(await opening('mpnet', () => {}, { kvDtype: 'bf16' })).toThrow(/and keys in f32\.$/);
    expect(await opening('mpnet', () => {})).not.toThrow();
  });
});
