import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executor } from '../../engine/executors/executor.js';
import type { PackedBatch } from '../../engine/packed-call/packed-batch.js';
import { stateBytesPerSlot } from '../../kvcache/kv-cache-size.js';
import { Random } from '../../tools/support/random.js';
import { makeStepBatch, type StepSequence } from '../../tools/support/step-batch.js';
import { TinyNetworks } from '../../tools/support/tiny-network.js';
import { describeExecutors, EXECUTORS } from '../support/executors.js';
import { bestInstructionSet, executorOptions } from '../support/native-options.js';
import { expectSameLogits, PagedSequences } from '../support/paged-sequences.js';
import { at, set } from '../support/spoil.js';

const SLOTS = 6;
const DRAFT_SLOTS = 4;
const DRAFT_ROWS = 6;
const states = { numStateSlots: SLOTS, numDraftSlots: DRAFT_SLOTS, stateDraftRows: DRAFT_ROWS };
const networks = new TinyNetworks();
afterAll(() => networks.remove());

const network = networks.make({ stateful: true, scanned: true });
const { inverseFrequencies } = network;
const { vocabSize } = network.shape;
const batchOf = (sequences: readonly StepSequence[], snapshots: Partial<PackedBatch> = {}): PackedBatch => ({
  ...makeStepBatch(sequences, { tokensPerBlock: 16, inverseFrequencies }),
  ...snapshots,
});
const tokens = (length: number, seed = 1) => new Random(seed).tokens(length, vocabSize);

/** A context of 3 tokens, and a chunk of 4 after 2, with a snapshot of the first and two of the second. */
const validBatch = () =>
  batchOf(
    [
      { tokens: tokens(3), cached: 0, blocks: [0], stateSlot: 0 },
      { tokens: tokens(6), cached: 2, blocks: [1], stateSlot: 1 },
    ],
    {
      snapshotStart: Int32Array.of(0, 1, 3),
      snapshotRows: Int32Array.of(1, 3, 6),
      snapshotSlots: Int32Array.of(2, 3, 4),
    },
  );

type Wrong = [string, (batch: PackedBatch) => void, RegExp];
const ABSENT: Wrong[] = [
  [
    'no slots',
    set('stateSlots', undefined),
    /stateSlots (has 0 entries, but 2 are needed|must be an Int32Array)/,
  ],
  ['no snapshots', set('snapshotStart', undefined), /snapshotStart must be an Int32Array/],
  ['no drafts', set('stateDrafts', undefined), /stateDrafts must be an Int32Array/],
];

describeExecutors(
  (on) => {
    const open = (changes: Parameters<typeof executorOptions>[0] = {}): Promise<Executor> =>
      on.open(network, executorOptions({ ...states, ...changes }));
    let executor: Executor;
    beforeAll(async () => {
      executor = await open();
    });
    afterAll(() => executor.close());

    describe('a batch of a network with states that is wrong', () => {
      it.each<Wrong>([
        // The calls of ranks are packed of all columns.
        ...(on.name === 'ranks' ? [] : ABSENT),
        [
          'a slot beyond the pool',
          at('stateSlots', 1, SLOTS),
          /stateSlots\[1\] is 6, but it must be in \[-1, 6\)/,
        ],
        ['a slot below -1', at('stateSlots', 0, -2), /stateSlots\[0\] is -2, but it must be in \[-1, 6\)/],
        ['a slot of two sequences', at('stateSlots', 1, 0), /slot 0 for states is written to twice/],
        ['too few slots', set('stateSlots', Int32Array.of(0)), /stateSlots has 1 entries, but 2 are needed/],
        ['slots of another type', set('stateSlots', new Float32Array(2)), /stateSlots must be an Int32Array/],
        ['too few starts', set('snapshotStart', Int32Array.of(0, 1)), /snapshotStart has 2 entries, but 3/],
        ['a start beyond the rows', at('snapshotStart', 2, 4), /snapshotStart\[2\] is 4, .*\[0, 4\)/],
        ['a negative start', at('snapshotStart', 0, -1), /snapshotStart\[0\] is -1/],
        [
          'fewer slots than rows',
          set('snapshotSlots', Int32Array.of(2, 3)),
          /snapshotStart\[2\] is 3, .*\[0, 3\)/,
        ],
        [
          'a row of another sequence',
          at('snapshotRows', 0, 3),
          /snapshotRows\[0\] is 3, .* row of sequence 0/,
        ],
        ['a row beyond the batch', at('snapshotRows', 2, 7), /snapshotRows\[2\] is 7, .* row of sequence 1/],
        ['a negative row', at('snapshotRows', 0, -1), /snapshotRows\[0\] is -1/],
        [
          'rows that do not ascend',
          at('snapshotRows', 2, 3),
          /snapshotRows\[2\] is 3, .* (?:after|behind) that of its snapshot/,
        ],
        ['a snapshot beyond the pool', at('snapshotSlots', 1, SLOTS), /snapshotSlots\[1\] is 6, .*\[0, 6\)/],
        ['a snapshot nowhere', at('snapshotSlots', 1, -1), /snapshotSlots\[1\] is -1/],
        ['a snapshot over a snapshot', at('snapshotSlots', 1, 4), /slot 4 for states is written to twice/],
        ['a snapshot over a state', at('snapshotSlots', 2, 0), /slot 0 for states is written to twice/],
        [
          'a draft of more rows than there are',
          at('stateDrafts', 1, 5),
          /stateDrafts\[1\] is 5, but at most its 4 rows/,
        ],
        ['a negative draft', at('stateDrafts', 0, -1), /stateDrafts\[0\] is -1, but it must be in \[0, /],
        [
          'more replayed rows than are logged',
          at('stateReplays', 1, 7),
          /stateReplays\[1\] is 7, .*\[0, 7\)/,
        ],
        [
          'rows replayed before the first one',
          at('stateReplays', 0, 1),
          /stateReplays\[0\] is 1, .* begins in this batch/,
        ],
        [
          'a draft of a sequence whose states are not kept',
          (batch) => {
            batch.stateSlots[1] = -1;
            batch.stateDrafts[1] = 1;
          },
          /stateSlots\[1\] is -1, but drafts need a slot in \[0, 4\)/,
        ],
        [
          'a draft in a slot that logs none',
          (batch) => {
            batch.stateSlots[1] = DRAFT_SLOTS + 1;
            batch.stateReplays[1] = 1;
          },
          /stateSlots\[1\] is 5, but drafts need a slot in \[0, 4\)/,
        ],
        [
          'more rows than a slot logs',
          (batch) => {
            batch.stateReplays[1] = 4;
            batch.stateDrafts[1] = 8;
          },
          /stateDrafts\[1\] is 8, so 8 rows are to be logged, but a slot has 6/,
        ],
      ])('%s: named, and nothing changes', (_, spoil, message) => {
        const first = () => executor.forward(validBatch()).slice(0, vocabSize);
        const before = first();
        const batch = validBatch();
        spoil(batch);
        expect(() => executor.forward(batch)).toThrow(message);
        expect(first()).toEqual(before);
      });

      it('refuses copies of slots that are not there, and lists that do not agree', () => {
        const copy = (source: number[], target: number[]) => () =>
          executor.copyStates!(Int32Array.from(source), Int32Array.from(target));
        expect(copy([1], [1, 2])).toThrow('source has 1 states and target 2');
        expect(copy([SLOTS], [1])).toThrow('source[0] is 6');
        expect(copy([1, 2], [1, -1])).toThrow('target[1] is -1');
        expect(() => executor.areStatesFinite!(Int32Array.of(0, SLOTS))).toThrow('slots[1] is 6');
        expect(copy([], [])).not.toThrow();
      });
    });

    describe('the states of a sequence', () => {
      it.each(on.instructionSets)(
        'give the same bits in chunks and crowds, at 1 and 3 threads, on %s',
        async (instructionSet) => {
          const all = [40, 3, 17, 90, 1, 66].map((length, i) => tokens(length, i + 1));
          const run = async (threads: number, feed: (sequences: PagedSequences) => void) => {
            const isa = instructionSet === undefined ? {} : { instructionSet };
            const own = await open({ ...isa, threads, maxNumTokens: 128, maxLogitRows: 128 });
            const blocks = new Random(threads).permutation(own.options.numBlocks);
            const sequences = new PagedSequences(own, network, all, blocks);
            feed(sequences);
            own.close();
            return sequences.logits;
          };
          const alone = await run(1, (sequences) => {
            for (const [sequence, { length }] of all.entries()) sequences.step([{ sequence, upTo: length }]);
          });
          const seeds = instructionSet === bestInstructionSet ? [1, 2, 3] : [1];
          for (const seed of seeds)
            expectSameLogits(
              await run(3, (sequences) => sequences.runMixed(seed, 128, (random) => 1 + random.below(9))),
              alone,
            );
        },
      );

      it.each(on.instructionSets)(
        'go back to the last token of a draft that was right, on %s',
        async (instructionSet) => {
          const own = await open(instructionSet === undefined ? {} : { instructionSet });
          const last = instructionSet === bestInstructionSet ? 12 : 3;
          for (let seed = 1; seed <= last; seed++) {
            const random = new Random(seed);
            const whole = tokens(60, seed);
            const expected: Float32Array[] = [];
            for (let at = 0; at < whole.length; at++)
              expected.push(
                own
                  .forward(
                    batchOf([
                      { tokens: whole.slice(0, at + 1), cached: at, blocks: [0, 1, 2, 3], stateSlot: 0 },
                    ]),
                  )
                  .slice(),
              );
            // Steps of certain rows and drafts of which some rows are wrong; and drafts that grow row by row, as a draft model's.
            let [at, replays] = [0, 0];
            while (at < whole.length - DRAFT_ROWS) {
              const certain = 1 + random.below(3);
              const drafts = random.below(DRAFT_ROWS + 1);
              const right = random.below(drafts + 1);
              const end = Math.min(at + certain, whole.length);
              const given = [...whole.slice(0, end + right), ...tokens(drafts - right, seed + 100)];
              const byOne = random.uniform() < 0.5;
              const rows = byOne
                ? [end, ...Array.from({ length: drafts }, (_, i) => end + 1 + i)]
                : [end + drafts];
              let from = at;
              for (const upTo of rows) {
                const logged = Math.max(0, upTo - end);
                const step = {
                  tokens: given.slice(0, upTo),
                  cached: from,
                  blocks: [4, 5, 6, 7],
                  stateSlot: 1,
                };
                const found = own.forward(
                  batchOf([
                    {
                      ...step,
                      logits: 'all',
                      drafts: logged,
                      replays: from > end ? from - end : from === at ? replays : 0,
                    },
                  ]),
                );
                for (let row = from; row < Math.min(upTo, end + right); row++)
                  expect(
                    found.subarray((row - from) * own.vocabSize, (row - from + 1) * own.vocabSize),
                  ).toEqual(expected[row]);
                from = upTo;
              }
              at = end + right;
              replays = right;
            }
          }
          own.close();
        },
      );

      it('are in a snapshot what they were behind its row, also a snapshot shorter than the taps', () => {
        const whole = tokens(14);
        const last = (batch: PackedBatch) => executor.forward(batch).slice();
        const expected = last(batchOf([{ tokens: whole, cached: 0, blocks: [5], stateSlot: 0 }]));
        for (const row of [0, 1, 2, 7, 12])
          for (const cached of [0, 1, 5].filter((one) => one <= row)) {
            if (cached > 0)
              executor.forward(
                batchOf([{ tokens: whole.slice(0, cached), cached: 0, blocks: [6], stateSlot: 1 }]),
              );
            const snapshot = {
              snapshotStart: Int32Array.of(0, 1),
              snapshotRows: Int32Array.of(row - cached),
              snapshotSlots: Int32Array.of(2),
            };
            const chunk = [{ tokens: whole.slice(0, 13), cached, blocks: [6], stateSlot: 1 }];
            executor.forward(batchOf(chunk, snapshot));
            executor.copyStates!(Int32Array.of(2), Int32Array.of(3));
            const found = last(batchOf([{ tokens: whole, cached: row + 1, blocks: [6], stateSlot: 3 }]));
            expect(found, `snapshot of row ${row} of a chunk behind ${cached}`).toEqual(expected);
          }
      });

      it('are nothing to the next sequence of their slot, not even NaN', () => {
        const next = () =>
          executor.forward(batchOf([{ tokens: tokens(9), cached: 0, blocks: [7], stateSlot: 5 }])).slice();
        const expected = next();
        const table = new Float32Array(network.shape.hiddenSize).fill(Number.NaN);
        const poisoned = batchOf(
          [{ tokens: [1, vocabSize, 2, 3, 4], cached: 0, blocks: [8], stateSlot: 5 }],
          {
            promptTables: [{ first: 0, count: 5, table }],
          },
        );
        const finite = (...slots: number[]) => executor.areStatesFinite!(Int32Array.from(slots));
        expect([finite(), finite(5)]).toEqual([true, true]);
        expect(executor.forward(poisoned).every(Number.isNaN)).toBe(true);
        expect([finite(0, 1), finite(5), finite(0, 5)]).toEqual([true, false, false]);
        expect(next()).toEqual(expected);
        expect(finite(5)).toBe(true);
      });

      it('are not kept of a sequence without a slot', () => {
        const before = executor
          .forward(batchOf([{ tokens: tokens(5), cached: 0, blocks: [9], stateSlot: 0 }]))
          .slice();
        const lost = batchOf([{ tokens: tokens(5), cached: 0, blocks: [10] }]);
        expect(executor.forward(lost)).toEqual(before);
        const on = (stateSlot: number) =>
          executor.forward(batchOf([{ tokens: tokens(6), cached: 5, blocks: [9], stateSlot }])).slice();
        executor.copyStates!(Int32Array.of(0), Int32Array.of(1));
        expect(on(0)).toEqual(on(1));
      });

      it('can be had outside, and written into another slot', () => {
        const { states } = executor.blockAccess ?? {};
        // Ranks have no access to blocks either.
        if (on.name === 'ranks') {
          expect(states).toBeUndefined();
          return;
        }
        const { bytesPerSlot, readStates, writeStates } = states!;
        expect(bytesPerSlot).toBe(stateBytesPerSlot(network.plan.states!));
        executor.forward(batchOf([{ tokens: tokens(5), cached: 0, blocks: [9], stateSlot: 0 }]));
        const bytes = new Uint8Array(2 * bytesPerSlot);
        readStates(Int32Array.of(3, 0), bytes);
        writeStates(Int32Array.of(1), bytes.subarray(bytesPerSlot));
        const found = new Uint8Array(bytesPerSlot);
        readStates(Int32Array.of(1), found);
        expect(found).toEqual(bytes.subarray(bytesPerSlot));
        const on6 = (stateSlot: number) =>
          executor.forward(batchOf([{ tokens: tokens(6), cached: 5, blocks: [9], stateSlot }])).slice();
        expect(on6(1)).toEqual(on6(0));
        expect(() => readStates(Int32Array.of(SLOTS), found)).toThrow(/slots\[0\] is 6/);
        expect(() => writeStates(Int32Array.of(-1), found)).toThrow(/slots\[0\] is -1/);
        expect(() => writeStates(Int32Array.of(0, 1), found)).toThrow(
          `has ${bytesPerSlot} bytes; 2 slots of ${bytesPerSlot} bytes are expected`,
        );
      });

      it('are counted, a slot for each', async () => {
        const [few, more] = [await open({ numStateSlots: 4 }), await open({ numStateSlots: 6 })];
        const bytes = more.memory().kvCacheBytes - few.memory().kvCacheBytes;
        expect(bytes).toBe(2 * stateBytesPerSlot(network.plan.states!));
        few.close();
        more.close();
      });
    });
  },
  EXECUTORS.filter(({ runsStates }) => runsStates),
);
