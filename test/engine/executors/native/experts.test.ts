import * as fs from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { NativeExecutor } from '../../../../engine/executors/native/native-executor.js';
import type { PlanOp } from '../../../../network/plan.js';
import { Random } from '../../../../tools/support/random.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { type TinyNetwork, TinyNetworks, type TinyShape } from '../../../../tools/support/tiny-network.js';
import { expectedLogits } from '../../../support/expected-logits.js';
import { greatestError } from '../../../support/naive-network.js';
import { executorOptions, instructionSets, multipliesPairs } from '../../../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../../../support/paged-sequences.js';
import { isShort } from '../../../support/scale.js';

const networks = new TinyNetworks();
afterAll(() => networks.remove());

const VOCABULARY = 67;
const LENGTHS = [40, 3, 17, 600, 1, 66];
/** Without the one that takes several passes, which are the same for all formats: code under a sanitizer takes seconds for it. */
const SHORT_LENGTHS = [40, 3, 17];

const made = new Map<string, TinyNetwork>();

/** A network for all instruction sets: millions of its weights are drawn. */
function make(changes: Partial<TinyShape> = {}): TinyNetwork {
  const key = JSON.stringify(changes);
  const network =
    made.get(key) ??
    networks.make({
      vocabSize: VOCABULARY,
      hiddenSize: 24,
      intermediateSize: 40,
      headDim: 8,
      // The number of pairs makes the longest sequence take several passes.
      experts: { count: 11, used: 9, normalize: true },
      ...changes,
    });
  made.set(key, network);
  return network;
}

type Options = Parameters<typeof executorOptions>[0];

function run(
  network: TinyNetwork,
  options: Options,
  steps: (sequences: PagedSequences) => void,
  lengths = LENGTHS,
) {
  const all = executorOptions({ maxNumTokens: 700, maxLogitRows: 700, numBlocks: 80, ...options });
  const executor = new NativeExecutor(network, all);
  const random = new Random(5);
  const tokens = lengths.map((length) => Array.from({ length }, () => random.below(VOCABULARY)));
  const sequences = new PagedSequences(executor, network, tokens, random.permutation(all.numBlocks));
  steps(sequences);
  executor.close();
  return { logits: sequences.logits, tokens };
}

const alone = (network: TinyNetwork, options: Options, lengths = LENGTHS) =>
  run(
    network,
    options,
    (sequences) => {
      for (const [sequence, upTo] of lengths.entries()) sequences.step([{ sequence, upTo }]);
    },
    lengths,
  );

const mixed = (network: TinyNetwork, options: Options, seed: number, lengths: number[]) =>
  run(
    network,
    options,
    (sequences) =>
      sequences.runMixed(seed, 700, (random) => (random.uniform() < 0.4 ? 1 : 1 + random.below(650))),
    lengths,
  );

/** Four groups of ten. */
const GROUPS = { groups: { count: 4, used: 2, top: 2 } } as const;

const FORMATS = ['f32', 'bf16', 'int8', 'int4', 'q4_k', 'mixed'] as const;
const SHAPES: Partial<Record<(typeof FORMATS)[number] | 'mxfp4', Partial<TinyShape>>> = {
  mxfp4: { hiddenSize: 64, intermediateSize: 32, headDim: 16, numLayers: 1 },
  q4_k: { hiddenSize: 256, intermediateSize: 256, headDim: 64, numLayers: 1 },
  mixed: { hiddenSize: 256, intermediateSize: 256, headDim: 64, numLayers: 1 },
};

describe.each(instructionSets)('a mixture of experts on %s', (instructionSet) => {
  it.each(FORMATS)('has the same bits alone, in crowds, in chunks, at 1 and 3 threads, %s', (precision) => {
    const network = make({ precision, ...SHAPES[precision] });
    const lengths = isShort && precision !== 'f32' ? SHORT_LENGTHS : LENGTHS;
    const { logits: expected } = alone(network, { instructionSet, threads: 1 }, lengths);
    for (const threads of isShort ? [3] : [1, 3]) {
      expectSameLogits(mixed(network, { instructionSet, threads }, 40 + threads, lengths).logits, expected);
    }
  });

  // Gate and up in formats of their own are products of their own, as are those of plain rows.
  it.each(['f32', 'mxfp4', 'q4_k', 'mixed'] as const)(
    'so it has where gate and up are clamped, %s',
    (precision) => {
      const experts = { count: 11, used: 9, normalize: true, clamped: true } as const;
      const network = make({ precision, ...SHAPES[precision], experts });
      const lengths = isShort ? SHORT_LENGTHS : LENGTHS;
      const { logits: expected } = alone(network, { instructionSet, threads: 1 }, lengths);
      expectSameLogits(mixed(network, { instructionSet, threads: 3 }, 43, lengths).logits, expected);
    },
  );

  it.each<[string, NonNullable<TinyShape['experts']>]>([
    ['shares of those that a row goes to', { count: 7, used: 3, normalize: true }],
    ['shares of all', { count: 7, used: 3, normalize: false }],
    ['biases, and gates that are clamped', { count: 7, used: 3, normalize: true, clamped: true }],
    ['one expert', { count: 5, used: 1, normalize: false }],
    ['all experts', { count: 4, used: 4, normalize: true }],
    ['more than a few of many', { count: 40, used: 19, normalize: false }],
    [
      'sigmoids of scores with a bias',
      { count: 7, used: 3, normalize: true, scoring: 'sigmoid', biased: true },
    ],
    [
      'groups by their two highest, and a factor',
      { count: 40, used: 19, normalize: true, ...GROUPS, scoring: 'sigmoid', biased: true, factor: 1.5 },
    ],
    [
      'two experts, one after the other',
      { count: 7, used: 2, normalize: false, scoring: 'sparsemixer', jitter: 0.3 },
    ],
    [
      'groups by their highest',
      { count: 12, used: 2, normalize: false, groups: { count: 3, used: 1, top: 1 } },
    ],
    [
      'many groups',
      { count: 60, used: 21, normalize: false, groups: { count: 30, used: 20, top: 1 }, factor: 2 },
    ],
  ])('agrees with a naive computation: %s', (_, experts) => {
    const network = make({ experts, numLayers: 2 });
    const { logits, tokens } = alone(network, { instructionSet }, [30]);
    const expected = expectedLogits(network, tokens[0]!, { kvDtype: 'f32' });
    expect(greatestError(logits[0]!, expected)).toBeLessThan(2e-4);
  });

  it('agrees with a naive computation with bf16 weights', () => {
    const network = make({ precision: 'bf16', numLayers: 1 });
    const { logits, tokens } = alone(network, { instructionSet }, [30]);
    const expected = expectedLogits(network, tokens[0]!, {
      kvDtype: 'f32',
      roundsInputs: multipliesPairs(instructionSet),
    });
    expect(greatestError(logits[0]!, expected)).toBeLessThan(2e-3);
  });
});

/** Logits of one prompt by a network whose router's rows are set. */
function withRouter(network: TinyNetwork, rows: (expert: number) => number[]): Float32Array {
  const executor = new NativeExecutor(spoilt(network, rows), executorOptions());
  const batch = makeStepBatch([{ tokens: [1, 2, 3, 4, 5], cached: 0, blocks: [0], logits: 'all' }], {
    tokensPerBlock: 16,
    inverseFrequencies: network.inverseFrequencies,
  });
  const logits = executor.forward(batch).slice();
  executor.close();
  return logits;
}

/** The network with its routers changed in a copy of its weights. */
function spoilt(network: TinyNetwork, rows: (expert: number) => number[]): TinyNetwork {
  const file = `${network.weightsFile}.${copies++}`;
  const bytes = fs.readFileSync(network.weightsFile);
  for (const { name, offset, columns, rows: count } of network.tensors) {
    if (!name.endsWith('router')) continue;
    const at = new Float32Array(bytes.buffer, bytes.byteOffset + offset, count * columns);
    for (let expert = 0; expert < count; expert++) at.set(rows(expert), expert * columns);
  }
  fs.writeFileSync(file, bytes);
  return { ...network, weightsFile: file, packedFolder: fs.mkdtempSync(`${file}.packed-`) };
}
let copies = 0;

describe('the choice of experts', () => {
  const width = 24;
  const same = (value: number) => Array.from({ length: width }, () => value);

  it('takes the lower numbers among equals', () => {
    const network = make({ experts: { count: 6, used: 2, normalize: true } });
    const equal = withRouter(network, () => same(0));
    const first = { ...network, plan: structuredClone(network.plan) };
    for (const op of first.plan.ops) {
      if (op.op !== 'experts') continue;
      // The experts after the first two are others now: nothing may go to them.
      op.gateUp = [op.gateUp[0]!, op.gateUp[1]!, ...op.gateUp.slice(2).reverse()];
      op.down = [op.down[0]!, op.down[1]!, ...op.down.slice(2).reverse()];
    }
    expect(withRouter(first, () => same(0))).toEqual(equal);
    for (const op of first.plan.ops) {
      if (op.op === 'experts') [op.gateUp[0], op.gateUp[2]] = [op.gateUp[2]!, op.gateUp[0]!];
    }
    expect(withRouter(first, () => same(0))).not.toEqual(equal);
  });

  it('gives a row no number where its scores are none', () => {
    const network = make({ experts: { count: 6, used: 2, normalize: true } });
    expect(withRouter(network, () => same(Number.NaN)).every(Number.isNaN)).toBe(true);
    // Nor where one of them is none, even if the row does not go there: a softmax over all of them has no number.
    expect(withRouter(network, (expert) => same(expert === 4 ? Number.NaN : 0)).every(Number.isNaN)).toBe(
      true,
    );
  });
});

describe('a plan with experts that do not fit together', () => {
  type Experts = Extract<PlanOp, { op: 'experts' }>;
  it.each<[string, (op: Experts) => void, RegExp]>([
    ['fewer ways down', (op) => op.down.pop(), /\(experts\).*11 gates and 10 ways down/],
    [
      'another number of scores',
      (op) => {
        op.scores = op.input;
      },
      /\(experts\).*scores must have a column for each of the 11 experts/,
    ],
    [
      'more used than there are',
      (op) => {
        op.used = 12;
      },
      /\(experts\).*used must be between 1 and 11, but it is 12/,
    ],
    [
      'groups of several sizes',
      (op) => {
        op.groups = { count: 2, used: 1, top: 1 };
      },
      /\(experts\).*groups\.count must divide the 11 experts, but it is 2/,
    ],
    [
      'more groups than experts',
      (op) => {
        op.groups = { count: 12, used: 1, top: 1 };
      },
      /\(experts\).*groups\.count must be between 1 and 11, but it is 12/,
    ],
    [
      'more groups used than there are',
      (op) => {
        op.groups = { count: 11, used: 12, top: 1 };
      },
      /\(experts\).*groups\.used must be between 1 and 11, but it is 12/,
    ],
    [
      'more used than the groups have',
      (op) => {
        op.groups = { count: 11, used: 8, top: 1 };
      },
      /\(experts\).*used must be between 1 and 8, but it is 9/,
    ],
    [
      'two of a group of one',
      (op) => {
        op.groups = { count: 11, used: 11, top: 2 };
      },
      /\(experts\).*groups\.top must be between 1 and 1, but it is 2/,
    ],
    [
      'a bias of another length',
      (op) => {
        op.choiceBias = 'norm';
      },
      /\(experts\).*choiceBias norm must be a vector of 11, but it is a vector \[1 x 24\]/,
    ],
    [
      'fewer biases than experts',
      (op) => {
        op.biases = { gateUp: op.gateUp.map(() => 'norm'), down: ['norm'] };
      },
      /\(experts\).*biases must be as many as the 11 experts, but there are 11 and 1/,
    ],
    [
      'a bias of a product of another length',
      (op) => {
        op.biases = { gateUp: op.gateUp.map(() => 'norm'), down: op.down.map(() => 'norm') };
      },
      /\(experts\).*biases\.gateUp norm must be a vector of 80, but it is a vector \[1 x 24\]/,
    ],
    [
      'a clamp beside an activation',
      (op) => {
        op.clamped = { alpha: 1, limit: 7 };
      },
      /\(experts\).*clamped is in place of the activation of a gate/,
    ],
    [
      'a limit that is no number',
      (op) => {
        op.clamped = { alpha: 1, limit: Number.NaN };
      },
      /clamped\.limit must be a number greater than 0/,
    ],
    [
      'a limit by an alpha that is none',
      (op) => {
        op.clamped = { alpha: Number.NaN, limit: 7 };
      },
      /\(experts\).*clamped must have an alpha and a limit greater than 0/,
    ],
    [
      'an unknown function of scores',
      (op) => {
        op.scoring = 'tanh' as never;
      },
      /scoring is "tanh", but it must be one of softmax, sigmoid, sparsemixer/,
    ],
    [
      'more experts than sparsemixer chooses',
      (op) => {
        op.scoring = 'sparsemixer';
        op.normalize = false;
      },
      /\(experts\).*sparsemixer is for 2 experts of one group that are not normalized/,
    ],
    [
      'a jitter beyond 1',
      (op) => {
        Object.assign(op, { scoring: 'sparsemixer', normalize: false, used: 2, jitter: 1.5 });
      },
      /\(experts\).*jitter must be a number from 0 to 1, and 0 without sparsemixer/,
    ],
    [
      'a jitter of a softmax',
      (op) => {
        op.jitter = 0.01;
      },
      /\(experts\).*jitter must be a number from 0 to 1, and 0 without sparsemixer/,
    ],
    [
      'a factor that is none',
      (op) => {
        op.factor = Number.NaN;
      },
      /\(experts\).*factor must be a number greater than 0/,
    ],
    [
      'a sum of a softmax with more in it',
      (op) => {
        op.sumEpsilon = 1e-6;
      },
      /\(experts\).*sumEpsilon is for the sum of normalized sigmoids alone/,
    ],
    [
      'a matrix of another shape',
      (op) => {
        op.down[3] = op.gateUp[3]!;
      },
      /\(experts\).*must be a matrix \[24 x 40\]/,
    ],
    [
      'a name that is no weight',
      (op) => {
        op.gateUp[2] = 'nothing';
      },
      /gateUp names nothing/,
    ],
    [
      'a name that is no text',
      (op) => {
        op.gateUp[2] = 5 as never;
      },
      /gateUp must be a list of names/,
    ],
    [
      'an output that is its input',
      (op) => {
        op.input = op.output;
      },
      /\(experts\).*share slot/,
    ],
  ])('is refused: %s', (_, spoil, message) => {
    const network = make();
    const plan = structuredClone(network.plan);
    spoil(plan.ops.find((op): op is Experts => op.op === 'experts')!);
    expect(() => new NativeExecutor({ ...network, plan }, executorOptions()).close()).toThrow(message);
  });
});
