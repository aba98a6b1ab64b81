import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor } from '../../../../engine/executors/executor.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import { philox4x32 } from '../../../../engine/executors/portable/sampling/philox.js';
import {
  ROW_NO_TOKEN_LEFT,
  ROW_NOT_FINITE,
  ROW_OK,
  type SamplingOutput,
} from '../../../../engine/packed-call/sampling-batch.js';
import { Random } from '../../../../tools/support/random.js';
import {
  makeSamplingBatch,
  makeSamplingOutput,
  type SamplingRow,
} from '../../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../../tools/support/step-batch.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { SAMPLERS } from '../../../support/executors.js';
import {
  naiveChanges,
  naiveDistribution,
  naivePhilox,
  naiveSample,
  sortedTokens,
} from '../../../support/naive-sampling.js';
import { executorOptions } from '../../../support/native-options.js';
import { isShort } from '../../../support/scale.js';

// Not a multiple of any vector width or chunk.
const VOCAB = 3019;
const MAX_ROWS = 64;
/** Rows that are compared with a full sort, for each filter and kind of logits. */
const SORTED_ROWS = isShort ? 2 : 16;
let tiny: TinyNetwork;
let executor: Executor;
beforeAll(() => {
  tiny = makeTinyNetwork({ vocabSize: VOCAB, hiddenSize: 8, intermediateSize: 8, numLayers: 1 });
});
afterAll(() => tiny.remove());

function options(threads: number) {
  return executorOptions({ threads, maxNumSequences: MAX_ROWS, maxLogitRows: MAX_ROWS, numBlocks: 1 });
}

/** Samples rows from logits of the test's own. */
function sample(
  logits: readonly Float32Array[],
  rows: readonly SamplingRow[],
  on = executor,
): SamplingOutput {
  const sequences = logits.map(() => ({ tokens: [1], cached: 0, blocks: [0] }));
  const { inverseFrequencies } = tiny;
  const view = on.forward(makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }));
  for (const [row, values] of logits.entries()) view.set(values, row * VOCAB);
  const numTop = rows.reduce((sum, row) => sum + Math.max(0, row.numTopLogProbs ?? 0), 0);
  const output = makeSamplingOutput(rows.length, numTop);
  on.sample(makeSamplingBatch(rows, VOCAB), output);
  for (const [row, values] of logits.entries()) {
    expect(
      Buffer.compare(
        Buffer.from(view.slice(row * VOCAB, (row + 1) * VOCAB).buffer),
        Buffer.from(values.buffer),
      ),
    ).toBe(0);
  }
  return output;
}

/** Expected tokens by key, computed once for all samplers. */
const known = new Map<string, number[]>();
function expectedOf(key: string, compute: () => number[]): number[] {
  const tokens = known.get(key) ?? compute();
  known.set(key, tokens);
  return tokens;
}

function randomLogits(random: Random, spread: number, levels = 0): Float32Array {
  return Float32Array.from({ length: VOCAB }, () => {
    const logit = random.normal() * spread;
    return levels === 0 ? logit : Math.round(logit * levels) / levels;
  });
}

describe('Philox4x32-10', () => {
  it.each([
    [
      [0, 0, 0, 0],
      [0, 0],
      [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    ],
    [
      [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      [0xffffffff, 0xffffffff],
      [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    ],
    [
      [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      [0xa4093822, 0x299f31d0],
      [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    ],
  ])('gives the published words for %o', (counter, key, words) => {
    expect([...loadAddon().philox4x32(Uint32Array.from(counter), Uint32Array.from(key))]).toEqual(words);
    expect(philox4x32(counter, key)).toEqual(words);
    expect(naivePhilox(counter, key)).toEqual(words);
  });
});

describe.each(SAMPLERS)('$name', ({ open, instructionSets }) => {
  beforeAll(async () => {
    executor = await open(tiny, options(2));
  });
  afterAll(() => executor.close());

  describe('a greedy row', () => {
    it('takes the greatest logit, the lowest id among equals', () => {
      const logits = new Float32Array(VOCAB).fill(-3);
      for (const token of [2900, 1500, 1501]) logits[token] = 2;
      expect(sample([logits], [{}]).tokens[0]).toBe(1500);
      expect(sample([logits], [{ banned: [1500] }]).tokens[0]).toBe(1501);
      expect(sample([logits], [{ banned: [1501, 1500, 1501] }]).tokens[0]).toBe(2900);
      expect(sample([new Float32Array(VOCAB)], [{}]).tokens[0]).toBe(0);
      const last = new Float32Array(VOCAB);
      last[VOCAB - 1] = 1e-3;
      expect(sample([last], [{}]).tokens[0]).toBe(VOCAB - 1);
    });

    it('is what a very small temperature gives', () => {
      const logits = randomLogits(new Random(1), 2);
      expect(sample([logits], [{ temperature: 1e-6, seed: 4n }]).tokens[0]).toBe(
        sample([logits], [{}]).tokens[0],
      );
    });
  });

  describe('a drawn row', () => {
    const filters: SamplingRow[] = [
      { temperature: 1 },
      { temperature: 0.3 },
      { temperature: 5 },
      { temperature: 1, topK: 1 },
      { temperature: 1, topK: 7 },
      { temperature: 1, topK: 40 },
      { temperature: 1, topK: 400 },
      { temperature: 1, topK: 1500, topP: 0.7 },
      { temperature: 1, topK: 2900 },
      { temperature: 1, topK: VOCAB },
      { temperature: 1, topK: VOCAB + 100 },
      { temperature: 1, topP: 0.9 },
      { temperature: 0.7, topP: 0.5 },
      { temperature: 1, topP: 0.999 },
      { temperature: 1, topP: 0 },
      { temperature: 1, minP: 0.05 },
      { temperature: 1, minP: 1 },
      { temperature: 1.3, topK: 50, topP: 0.9, minP: 0.02 },
      { temperature: 1, topP: 0.8, minP: 0.2 },
      { temperature: 1, topP: 0.95, banned: [5] },
      { temperature: 1, allowed: [7] },
      { temperature: 1, topP: 0.9, allowed: [0, 31, 32, 63, 64, 1500, 3007, 3008, 3018] },
      {
        temperature: 1,
        topK: 30,
        repetitionPenalty: 1.3,
        presencePenalty: 0.5,
        prompt: [1, 2, 3],
        generated: [4, 4],
        banned: [6],
        allowed: Array.from({ length: 1000 }, (_, i) => 3 * i),
      },
      { temperature: 1, topK: 20, banned: Array.from({ length: 1500 }, (_, i) => 2 * i) },
    ];

    it.each([
      ['random logits', 2, 0],
      ['flat logits', 0.05, 0],
      ['many equal logits', 1.5, 2],
      ['logits that are nearly all equal', 0.3, 1],
      ['peaked logits', 12, 0],
    ])('is what a full sort gives, on %s', (_, spread, levels) => {
      const random = new Random(31);
      for (const filter of filters) {
        const rows = Array.from({ length: SORTED_ROWS }, (_, i) => ({
          ...filter,
          seed: BigInt(i) << 30n,
          position: i,
          sequenceIndex: i % 3,
        }));
        const logits = rows.map(() => randomLogits(random, spread, levels));
        const { tokens } = sample(logits, rows);
        const expected = expectedOf(JSON.stringify([spread, levels, filter]), () =>
          rows.map((row, i) => naiveSample(logits[i]!, row)),
        );
        // Sums in f32 move a boundary by an ulp or so; with these seeds no draw falls that close to one.
        expect([filter, ...tokens]).toEqual([filter, ...expected]);
      }
    });

    it('falls on all tokens that the filters keep, and no other, as often as it should', () => {
      const random = new Random(77);
      const logits = randomLogits(random, 2, 4);
      for (const filter of [
        { temperature: 0.6, topK: 12 },
        { temperature: 0.8, topP: 0.3 },
        { temperature: 0.7, minP: 0.3 },
      ]) {
        const distribution = naiveDistribution(logits, filter);
        const counts = new Map<number, number>();
        const draws = (isShort ? 10 : 100) * MAX_ROWS;
        for (let call = 0; call < draws / MAX_ROWS; call++) {
          const rows = Array.from({ length: MAX_ROWS }, (_, i) => ({
            ...filter,
            seed: 1234n,
            position: call * MAX_ROWS + i,
          }));
          const { tokens } = sample(
            rows.map(() => logits),
            rows,
          );
          for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
        }
        expect([...counts.keys()].every((token) => distribution.has(token))).toBe(true);
        let chiSquare = 0;
        for (const [token, probability] of distribution) {
          const expected = probability * draws;
          chiSquare += ((counts.get(token) ?? 0) - expected) ** 2 / expected;
        }
        // Mean = degrees of freedom, standard deviation = sqrt(2 x that); the seed is fixed.
        const freedom = distribution.size - 1;
        expect(chiSquare).toBeLessThan(freedom + 4 * Math.sqrt(2 * freedom));
      }
    });

    it('depends on seed, sequence index and position, on nothing else', async () => {
      const random = new Random(5);
      const logits = Array.from({ length: MAX_ROWS }, () => randomLogits(random, 1));
      const rows = logits.map((values, i) => ({
        temperature: 1,
        topP: 0.9,
        seed: BigInt(i),
        position: i,
        numTopLogProbs: 2,
        // Row i bans its i % 5 likeliest tokens: lists of any length, also empty.
        banned: sortedTokens(Float64Array.from(values)).slice(0, i % 5),
      }));
      const together = sample(logits, rows);
      for (const [i, { banned }] of rows.entries()) {
        for (const token of [together.tokens[i], ...together.topTokens.slice(2 * i, 2 * i + 2)]) {
          expect(banned).not.toContain(token);
        }
        expect(sample([logits[i]!], [rows[i]!]).tokens[0]).toBe(together.tokens[i]);
      }
      for (const threads of [1, 8]) {
        const other = await open(tiny, options(threads));
        expect(sample(logits, rows, other)).toEqual(together);
        const reversed = sample([...logits].reverse(), [...rows].reverse(), other);
        expect([...reversed.tokens].reverse()).toEqual([...together.tokens]);
        expect([...reversed.logProbs].reverse()).toEqual([...together.logProbs]);
        other.close();
      }
      const same = logits.map(() => logits[0]!);
      const drawn = (change: (i: number) => SamplingRow) => {
        const output = sample(
          same,
          same.map((_, i) => ({ temperature: 2, seed: 9n, position: 3, ...change(i) })),
        );
        return new Set(output.tokens).size;
      };
      expect(drawn(() => ({}))).toBe(1);
      expect(drawn((i) => ({ seed: BigInt(i) }))).toBeGreaterThan(40);
      expect(drawn((i) => ({ seed: BigInt(i) << 32n }))).toBeGreaterThan(40);
      expect(drawn((i) => ({ position: i }))).toBeGreaterThan(40);
      expect(drawn((i) => ({ sequenceIndex: i }))).toBeGreaterThan(40);
    });
  });

  describe('biases, penalties and bans', () => {
    const prompt = [1, 2, 2, 3, 4, -1, 5];
    const generated = [4, 5, 5, 5, 6, 2];
    const everySecond = Float32Array.from({ length: VOCAB }, (_, token) => (token % 2 === 0 ? 2.5 : 0));
    it.each<SamplingRow>([
      { repetitionPenalty: 1.7 },
      { repetitionPenalty: 0.5 },
      { presencePenalty: 1.25 },
      { frequencyPenalty: 0.75 },
      { presencePenalty: -0.5, frequencyPenalty: -1 },
      { repetitionPenalty: 1.3, presencePenalty: 0.5, frequencyPenalty: 0.25, banned: [5, 0, 8] },
      { noRepeatNgramSize: 1 },
      { noRepeatNgramSize: 2 },
      { noRepeatNgramSize: 3, banned: [2] },
      { noRepeatNgramSize: 12 },
      { bias: { tokens: Int32Array.of(7, 2, 9), values: Float32Array.of(3.5, -2, -Infinity) } },
      { bias: { tokens: Int32Array.of(4, 4), values: Float32Array.of(1.5, 1.25) }, repetitionPenalty: 1.4 },
      { bias: { tokens: null, values: everySecond }, presencePenalty: 0.5, noRepeatNgramSize: 1 },
    ])('%o change the distribution as defined', (penalties) => {
      const row = { ...penalties, prompt, generated, numTopLogProbs: 10 };
      const logits = new Float32Array(VOCAB).fill(-20);
      for (let token = 0; token < 10; token++) logits[token] = (token % 2 === 0 ? 1 : -1) * (1 + token / 4);
      const expected = naiveChanges(logits, row);
      expect(expected.some((logit, token) => logit !== logits[token])).toBe(row.noRepeatNgramSize !== 12);
      const sum = Math.log(expected.reduce((total, logit) => total + Math.exp(logit), 0));
      const output = sample([logits], [row]);
      expect([...output.topTokens]).toEqual(sortedTokens(expected).slice(0, 10));
      for (const [i, token] of output.topTokens.entries()) {
        const logProb = expected[token]! - sum;
        if (logProb === -Infinity) expect(output.topLogProbs[i]).toBe(-Infinity);
        else expect(output.topLogProbs[i]).toBeCloseTo(logProb, 4);
      }
      expect(output.tokens[0]).toBe(output.topTokens[0]);
      expect(output.logProbs[0]).toBe(output.topLogProbs[0]);
    });

    it('leave nothing behind for the next row', () => {
      const logits = randomLogits(new Random(8), 3);
      const plain = sample([logits], [{ temperature: 1, seed: 3n, numTopLogProbs: 4 }]);
      const bias = { tokens: Int32Array.of(3, 3), values: Float32Array.of(50, -Infinity) };
      const all = { repetitionPenalty: 3, presencePenalty: 2, noRepeatNgramSize: 2, bias, banned: [3, 9, 5] };
      sample([logits], [{ ...all, prompt, generated }]);
      sample([logits], [{ ...all, prompt, generated, bias: { tokens: null, values: everySecond } }]);
      expect(sample([logits], [{ temperature: 1, seed: 3n, numTopLogProbs: 4 }])).toEqual(plain);
    });
  });

  describe('a mask', () => {
    const logits = randomLogits(new Random(41), 2);
    const row = { temperature: 1, seed: 5n, numTopLogProbs: 3 };

    it('that allows every token changes nothing, and none touches another row', () => {
      const all = Array.from({ length: VOCAB }, (_, token) => token);
      const plain = sample([logits, logits], [row, { ...row, position: 1 }]);
      const masked = sample(
        [logits, logits, logits],
        [
          { ...row, allowed: all },
          { ...row, position: 1 },
          { ...row, allowed: [3, 2000] },
        ],
      );
      expect([...masked.tokens.subarray(0, 2)]).toEqual([...plain.tokens]);
      expect([...masked.logProbs.subarray(0, 2)]).toEqual([...plain.logProbs]);
      expect([...masked.topTokens.subarray(0, 6)]).toEqual([...plain.topTokens]);
      expect([3, 2000]).toContain(masked.tokens[2]);
    });

    it('with one token left gives it the log-prob 0; with none left the row has nothing to draw from', () => {
      const output = sample(
        [logits, logits],
        [
          { ...row, allowed: [1234] },
          { ...row, allowed: [] },
        ],
      );
      expect([output.tokens[0], output.logProbs[0], output.status[0]]).toEqual([1234, 0, ROW_OK]);
      expect([output.tokens[1], output.status[1]]).toEqual([-1, ROW_NO_TOKEN_LEFT]);
    });

    it('does not hide logits that are not finite', () => {
      const bad = logits.slice();
      bad[9] = Number.NaN;
      expect(sample([bad], [{ allowed: [1, 2] }]).status[0]).toBe(ROW_NOT_FINITE);
    });
  });

  describe('log-probs', () => {
    it('are of the distribution before temperature and truncation, ties by the lowest id', () => {
      const logits = randomLogits(new Random(13), 2, 2);
      const sorted = sortedTokens(Float64Array.from(logits));
      const sum = Math.log(logits.reduce((total, logit) => total + Math.exp(logit), 0));
      const row = { temperature: 0.2, topK: 30, seed: 8n };
      const output = sample(
        [logits, logits, logits],
        [{ ...row, numTopLogProbs: 20 }, { ...row, numTopLogProbs: 0 }, row],
      );
      expect([...output.topTokens.slice(0, 20)]).toEqual(sorted.slice(0, 20));
      for (let i = 0; i < 20; i++) expect(output.topLogProbs[i]).toBeCloseTo(logits[sorted[i]!]! - sum, 4);
      expect(output.logProbs[0]).toBeCloseTo(logits[output.tokens[0]!]! - sum, 4);
      expect(output.logProbs[1]).toBe(output.logProbs[0]);
      expect(output.logProbs[2]).toBe(0);
      expect([...output.topStart]).toEqual([0, 20, 20, 20]);
    });
  });

  describe('many top log-probs', () => {
    it.each([20, 64, 65, 800, 2000, 3000, VOCAB])('%i of them are what a full sort gives', (count) => {
      for (const [spread, levels] of [
        [2, 0],
        [2, 2],
        [0.1, 0],
      ] as const) {
        const logits = randomLogits(new Random(count), spread, levels);
        // Also where the values rise in the order of the ids, or come again every 32: what a sample of them could miss.
        if (levels === 2) logits.sort();
        if (spread === 0.1) for (const i of logits.keys()) logits[i] = Math.sin(i % 32);
        const banned = sortedTokens(Float64Array.from(logits)).slice(0, 3);
        const changed = naiveChanges(logits, { banned });
        const output = sample([logits], [{ banned, numTopLogProbs: count }]);
        expect([...output.topTokens]).toEqual(sortedTokens(changed).slice(0, count));
        expect(output.tokens[0]).toBe(output.topTokens[0]);
      }
    });
  });

  describe('a row that is not finite', () => {
    it.each(instructionSets)(
      'gets its status; its neighbours notice nothing (%s)',
      async (instructionSet) => {
        const other = await open(tiny, { ...options(2), ...(instructionSet && { instructionSet }) });
        const random = new Random(17);
        const good = randomLogits(random, 1);
        const spoiled = [0, 1, 8, 1023, 1024, VOCAB - 1].flatMap((at) =>
          [Number.NaN, Infinity].map((value) => {
            const logits = good.slice();
            logits[at] = value;
            return logits;
          }),
        );
        const nothing = new Float32Array(VOCAB).fill(-Infinity);
        const single = nothing.slice();
        single[77] = -5;
        const row = { temperature: 1, topP: 0.9, seed: 2n, numTopLogProbs: 1 };
        const alone = sample([good], [row], other);
        const bad = [...spoiled, nothing];
        const logits = bad.flatMap((values) => [values, good]);
        const output = sample(
          logits,
          logits.map(() => row),
          other,
        );
        for (const i of bad.keys()) {
          expect([output.status[2 * i], output.tokens[2 * i]]).toEqual([ROW_NOT_FINITE, -1]);
          expect([output.status[2 * i + 1], output.tokens[2 * i + 1]]).toEqual([ROW_OK, alone.tokens[0]]);
          expect(output.logProbs[2 * i + 1]).toBe(alone.logProbs[0]);
        }
        const lone = sample(
          [single, single, spoiled[2]!],
          [row, { ...row, banned: [4, 77] }, { banned: [0, 1, 2] }],
          other,
        );
        expect([...lone.status]).toEqual([ROW_OK, ROW_NO_TOKEN_LEFT, ROW_NOT_FINITE]);
        expect([...lone.tokens]).toEqual([77, -1, -1]);
        expect(lone.logProbs[0]).toBeCloseTo(0, 6);
        other.close();
      },
    );
  });

  describe('rows that list candidates', () => {
    it.each(instructionSets)(
      'on %s change the log-softmax and give the greatest of it',
      async (instructionSet) => {
        const random = new Random(77);
        const on = await open(tiny, { ...options(2), ...(instructionSet && { instructionSet }) });
        const history = () => Array.from({ length: 40 }, () => random.below(VOCAB));
        const rows: SamplingRow[] = Array.from({ length: 24 }, (_, i) => ({
          listsCandidates: true,
          numTopLogProbs: 1 + 3 * i,
          prompt: history(),
          generated: history(),
          ...(i % 3 === 0 ? { repetitionPenalty: 1.4 } : {}),
          ...(i % 4 === 1 ? { banned: history() } : {}),
          ...(i % 5 === 2 ? { frequencyPenalty: 0.3, presencePenalty: -0.2 } : {}),
          ...(i % 6 === 3 ? { allowed: history() } : {}),
          ...(i % 7 === 4 ? { bias: { tokens: Int32Array.of(5, 9), values: Float32Array.of(20, -3) } } : {}),
        }));
        const logits = rows.map(() => Float32Array.from({ length: VOCAB }, () => random.normal() * 3));
        const output = sample(logits, rows, on);
        on.close();
        for (const [row, values] of logits.entries()) {
          const norm = Math.log(values.reduce((sum, x) => sum + Math.exp(x), 0));
          const changed = naiveChanges(
            values.map((x) => x - norm),
            rows[row]!,
          );
          const expected = sortedTokens(changed).slice(0, rows[row]!.numTopLogProbs);
          const first = output.topStart[row]!;
          expect(output.status[row]).toBe(ROW_OK);
          const found = [...output.topTokens.subarray(first, first + expected.length)];
          for (const [i, token] of expected.entries()) {
            const logProb = output.topLogProbs[first + i]!;
            if (changed[token] === -Infinity) expect(logProb).toBe(-Infinity);
            else expect(Math.abs(logProb - changed[token]!)).toBeLessThan(1e-4);
            // Rounding may swap neighbours that are as good as equal.
            if (found[i] !== token)
              expect(Math.abs(changed[found[i]!]! - changed[token]!)).toBeLessThan(1e-5);
          }
          expect(output.tokens[row]).toBe(found[0]);
        }
      },
    );

    it('say where nothing is left, or nothing is finite, and may list the whole vocabulary', () => {
      const plain = Float32Array.from({ length: VOCAB }, (_, i) => -i / 100);
      const broken = plain.slice();
      broken[17] = Number.NaN;
      const all = Array.from({ length: VOCAB }, (_, token) => token);
      const rows: SamplingRow[] = [
        { listsCandidates: true, numTopLogProbs: 3, banned: all },
        { listsCandidates: true, numTopLogProbs: 3 },
        { listsCandidates: true, numTopLogProbs: VOCAB },
        { numTopLogProbs: 2 },
      ];
      const output = sample([plain, broken, plain, plain], rows);
      expect([...output.status]).toEqual([ROW_NO_TOKEN_LEFT, ROW_NOT_FINITE, ROW_OK, ROW_OK]);
      expect([...output.topLogProbs.subarray(0, 3)]).toEqual([-Infinity, -Infinity, -Infinity]);
      expect([...output.topTokens.subarray(6, 6 + VOCAB)]).toEqual(all);
      expect(output.tokens[3]).toBe(0);
      expect(() => sample([plain], [{ listsCandidates: true, numTopLogProbs: 0 }])).toThrow(
        /numTopLogProbs\[0\] is 0, but a row that lists candidates needs at least 1/,
      );
    });
  });
});
