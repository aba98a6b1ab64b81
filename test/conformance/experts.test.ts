import { expect, it } from 'vitest';
import { Random } from '../../tools/support/random.js';
import { describeExecutors, EXECUTORS, RANKS, type TestExecutor } from '../support/executors.js';
import {
  EXPERT_INNER,
  EXPERT_WIDTH,
  type ExpertNetwork,
  type ExpertSettings,
  expertBatch,
  expertOptions,
  makeExpertNetwork,
} from '../support/expert-networks.js';
import { freshFolders } from '../support/fresh-folders.js';
import { naiveLogits } from '../support/naive-network.js';

/** More rows than any executor computes at once. */
const ROWS = 300;
const TOLERANCE = 2e-5;
const freshFolder = freshFolders('skein-experts');

const CROWD = new Random(9).tokens(ROWS, EXPERT_WIDTH);
const EACH = Array.from({ length: EXPERT_WIDTH }, (_, token) => token);

/** Rows of a network: of each token by itself, and of all tokens of a crowd in one step. */
interface Found {
  alone: Float32Array[];
  crowd: Float32Array[];
}

async function run({ open }: TestExecutor, network: ExpertNetwork): Promise<Found> {
  const executor = await open(network, expertOptions(ROWS));
  const rowsOf = (tokens: number[]) => {
    const logits = executor.forward(expertBatch(network, tokens));
    return tokens.map((_, i) => logits.slice(i * EXPERT_WIDTH, (i + 1) * EXPERT_WIDTH));
  };
  const found = { alone: EACH.flatMap((token) => rowsOf([token])), crowd: rowsOf(CROWD) };
  executor.close();
  return found;
}

/** Checks that a crowd changes no bit, and that rows are the naive network's; what is no number there is none here. */
function check(on: TestExecutor, { plan, weights, inverseFrequencies }: ExpertNetwork, found: Found): void {
  const options = { kvDtype: 'f32' as const, inverseFrequencies, ropeScale: 1 };
  const expected = naiveLogits(plan, weights, EACH, options);
  const errorOf = (row: Float32Array, token: number) =>
    row.reduce((most, y, i) => {
      const right = expected[token]![i]!;
      return Number.isNaN(y) && Number.isNaN(right) ? most : Math.max(most, Math.abs(y - right));
    }, 0);
  for (const token of EACH)
    expect(errorOf(found.alone[token]!, token), `token ${token}`).toBeLessThan(TOLERANCE);
  for (const [row, token] of CROWD.entries()) {
    if (on.keepsBits) expectSameRow(found.crowd[row]!, found.alone[token]!, row);
    else expect(errorOf(found.crowd[row]!, token), `row ${row}`).toBeLessThan(TOLERANCE);
  }
}

/** A matcher for each of hundreds of rows would take most of the time. What is no number has the same bits too. */
function expectSameRow(found: Float32Array, wanted: Float32Array, row: number): void {
  const same = Buffer.from(found.buffer).equals(Buffer.from(wanted.buffer));
  if (!same) expect(found, `row ${row}`).toEqual(wanted);
}

const isNothing = (row: Float32Array) => row.every(Number.isNaN);

const SETTINGS: ExpertSettings[] = [
  { count: 1, used: 1, normalize: true },
  { count: 5, used: 1, normalize: false },
  { count: 5, used: 2, normalize: true },
  { count: 8, used: 3, normalize: false, activation: 'geluTanh' },
  { count: 4, used: 4, normalize: true },
  { count: 22, used: 8, normalize: true, activation: 'relu' },
  { count: 6, used: 2, normalize: false, activation: 'gelu', ungated: true },
  { count: 5, used: 3, normalize: true, withBiases: true },
  { count: 5, used: 2, normalize: true, withBiases: true, ungated: true, activation: 'relu' },
  { count: 6, used: 2, normalize: true, clamped: { alpha: 1.702, limit: 0.5 } },
  { count: 6, used: 4, normalize: true, withBiases: true, clamped: { alpha: 1.702, limit: 0.75 } },
  { count: 8, used: 3, normalize: true, scoring: 'sigmoid' },
  { count: 8, used: 3, normalize: false, scoring: 'sigmoid', factor: 2.5 },
  { count: 9, used: 4, normalize: true, scoring: 'sigmoid', biased: true, sumEpsilon: 0.01 },
  { count: 9, used: 2, normalize: false, biased: true, factor: 0.5 },
  { count: 12, used: 3, normalize: false, groups: { count: 4, used: 2, top: 1 } },
  { count: 2, used: 2, normalize: false, scoring: 'sparsemixer', jitter: 0.01 },
  { count: 9, used: 2, normalize: false, scoring: 'sparsemixer', jitter: 0.3, factor: 1.5 },
  { count: 20, used: 18, normalize: true, groups: { count: 10, used: 9, top: 2 }, biased: true },
  {
    count: 12,
    used: 3,
    normalize: true,
    scoring: 'sigmoid',
    groups: { count: 3, used: 1, top: 2 },
    biased: true,
    factor: 1.5,
  },
];
const BOTH: ExpertSettings[] = [true, false].map((normalize) => ({ count: 6, used: 2, normalize }));
const SIGMOID: ExpertSettings = { count: 6, used: 2, normalize: false, scoring: 'sigmoid' };
const SPARSE: ExpertSettings = { ...BOTH[1]!, scoring: 'sparsemixer', jitter: 0.2 };
const GROUPED: ExpertSettings = { ...SIGMOID, biased: true, groups: { count: 3, used: 2, top: 2 } };

describeExecutors(
  (on) => {
    it.each(SETTINGS)(
      'a mixture is what the naive network makes, alone and in a crowd: %o',
      async (settings) => {
        const network = makeExpertNetwork(freshFolder(), settings);
        check(on, network, await run(on, network));
      },
    );

    it.each([...BOTH, SPARSE, GROUPED, { ...SIGMOID, used: 1 }])(
      'all rows may go to the same experts: %o',
      async (settings) => {
        const network = makeExpertNetwork(freshFolder(), settings, (weights) => {
          for (const token of EACH) weights.get('embedding')![token * EXPERT_WIDTH + 4] = 6;
        });
        check(on, network, await run(on, network));
      },
    );

    it.each([...BOTH, SIGMOID, SPARSE, GROUPED])(
      'equal scores go to the first experts: %o',
      async (settings) => {
        const network = makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('router')!.fill(0);
          weights.get('choiceBias')?.fill(0);
          // No row goes to the others.
          for (const expert of [2, 3, 4, 5]) weights.get(`down.${expert}`)!.fill(Number.NaN);
        });
        check(on, network, await run(on, network));
      },
    );

    it.each([...BOTH, SIGMOID, SPARSE, GROUPED])(
      'rows without a score that is a number are no numbers: %o',
      async (settings) => {
        const network = makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('router')!.fill(Number.NaN);
        });
        const { alone, crowd } = await run(on, network);
        for (const row of [...alone, ...crowd]) expect(isNothing(row)).toBe(true);
      },
    );

    it.each([...BOTH, SIGMOID, SPARSE, GROUPED])(
      'one score that is no number leaves none in its row: %o',
      async (settings) => {
        const network = makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('router')!.subarray(0, EXPERT_WIDTH).fill(Number.NaN);
        });
        const { alone, crowd } = await run(on, network);
        for (const row of [...alone, ...crowd]) expect(isNothing(row)).toBe(true);
      },
    );

    it.each([SIGMOID, BOTH[0]!, BOTH[1]!])('a bias changes the choice and no share: %o', async (rule) => {
      const settings: ExpertSettings = { ...rule, biased: true };
      const withBias = (value: number) =>
        makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('choiceBias')!.set([0, value, 0, 0, value, 0]);
          // No row goes to the others, whatever its scores.
          for (const expert of [0, 2, 3, 5]) weights.get(`down.${expert}`)!.fill(Number.NaN);
        });
      const network = withBias(2);
      const [found, more] = [await run(on, network), await run(on, withBias(3))];
      check(on, network, found);
      check(on, network, more);
      if (on.keepsBits) expect(more).toEqual(found);
    });

    it('a group of experts that are not finite spoils no row that goes to others', async () => {
      const settings: ExpertSettings = { ...GROUPED, groups: { count: 3, used: 2, top: 1 } };
      const withExperts = (scale: number) =>
        makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('choiceBias')!.set([0, 0, -2, -2, 0, 0]);
          for (const expert of [2, 3])
            weights.set(
              `gateUp.${expert}`,
              weights.get(`gateUp.${expert}`)!.map((x) => x * scale),
            );
        });
      const intact = await run(on, withExperts(1));
      const spoilt = await run(on, withExperts(Number.NaN));
      for (const { crowd } of [intact, spoilt])
        expect(crowd.every((row) => row.every(Number.isFinite))).toBe(true);
      if (on.keepsBits) expect(spoilt).toEqual(intact);
    });

    it('scores of a group that are all no numbers leave none in any row', async () => {
      const network = makeExpertNetwork(freshFolder(), GROUPED, (weights) => {
        weights.get('router')!.fill(Number.NaN, 2 * EXPERT_WIDTH, 4 * EXPERT_WIDTH);
      });
      const { alone, crowd } = await run(on, network);
      for (const row of [...alone, ...crowd]) expect(isNothing(row)).toBe(true);
    });

    it('what is no number passes no clamp, and a limit that is never met changes nothing but the form', async () => {
      const settings: ExpertSettings = {
        ...BOTH[0]!,
        withBiases: true,
        clamped: { alpha: 1.702, limit: 1e6 },
      };
      const network = makeExpertNetwork(freshFolder(), settings);
      check(on, network, await run(on, network));
      for (const half of [0, EXPERT_INNER]) {
        const spoilt = makeExpertNetwork(freshFolder(), settings, (weights) => {
          for (const expert of [0, 1, 2, 3, 4, 5]) weights.get(`gateUp.${expert}.bias`)![half] = Number.NaN;
        });
        const { alone, crowd } = await run(on, spoilt);
        for (const row of [...alone, ...crowd]) expect(isNothing(row)).toBe(true);
      }
    });

    // Spoilt are rows and weights, not the shares: one kind of them.
    it.each([BOTH[0]!])('one row that is not finite spoils no other: %o', async (settings) => {
      const intact = await run(on, makeExpertNetwork(freshFolder(), settings));
      const spoilt = await run(
        on,
        makeExpertNetwork(freshFolder(), settings, (weights) => {
          weights.get('embedding')!.fill(Number.NaN, 7 * EXPERT_WIDTH, 8 * EXPERT_WIDTH);
        }),
      );
      for (const [row, token] of CROWD.entries()) {
        if (token === 7) expect(isNothing(spoilt.crowd[row]!)).toBe(true);
        else if (on.keepsBits) expectSameRow(spoilt.crowd[row]!, intact.crowd[row]!, row);
        else expect(spoilt.crowd[row]!.every(Number.isFinite)).toBe(true);
      }
    });

    it.each([BOTH[1]!])(
      'an expert that is not finite spoils the rows that go to it and no other: %o',
      async (settings) => {
        const score = (weights: Map<string, Float32Array>) => {
          for (const token of EACH)
            weights.get('embedding')![token * EXPERT_WIDTH + 3] = token === 5 ? 20 : -20;
        };
        const intact = await run(on, makeExpertNetwork(freshFolder(), settings, score));
        for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
          const spoilt = await run(
            on,
            makeExpertNetwork(freshFolder(), settings, (weights) => {
              score(weights);
              weights.get('gateUp.3')![2 * EXPERT_WIDTH + 1] = value;
              weights.get('down.3')!.fill(value, 0, 3 * EXPERT_INNER);
            }),
          );
          for (const [row, token] of CROWD.entries()) {
            if (token === 5) expect(spoilt.crowd[row]!.some(Number.isFinite)).toBe(false);
            else if (on.keepsBits) expectSameRow(spoilt.crowd[row]!, intact.crowd[row]!, row);
            else expect(spoilt.crowd[row]!.every(Number.isFinite)).toBe(true);
          }
        }
      },
    );
  },
  // This network has one layer, and ranks take experts in stages of whole layers: rows.test.ts has such a network for them.
  EXECUTORS.filter((executor) => executor !== RANKS),
);
