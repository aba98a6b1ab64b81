import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Executor } from '../../../engine/executors/executor.js';
import { NativeExecutor } from '../../../engine/executors/native/native-executor.js';
import type { PackedBatch } from '../../../engine/packed-call/packed-batch.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../tools/support/sampling-rows.js';
import { makeStepBatch } from '../../../tools/support/step-batch.js';
import { TinyNetworks, type TinyShape } from '../../../tools/support/tiny-network.js';
import { executorOptions } from '../../support/native-options.js';
import { TestGroups } from '../../support/rank-groups.js';

const networks = new TinyNetworks();
const groups = new TestGroups();
afterEach(() => groups.close());
afterAll(() => networks.remove());

const OPTIONS = executorOptions({ threads: 1, maxNumTokens: 64, maxLogitRows: 16 });
const RUNNING = 'A begun step is running; finish() must come first.';

/** A batch of one sequence, whose blocks are its number and the next. */
function batchOf(
  { inverseFrequencies }: { inverseFrequencies: Float32Array },
  sequence: number,
  length: number,
  cached = 0,
): PackedBatch {
  const tokens = Array.from({ length }, (_, i) => (i * 7 + sequence) % 100);
  const blocks = [2 * sequence, 2 * sequence + 1];
  const newBlocks = cached === 0 ? blocks : [];
  return makeStepBatch([{ tokens, cached, blocks }], { tokensPerBlock: 16, inverseFrequencies, newBlocks });
}

const rows = () => makeSamplingBatch([{ temperature: 0.8, seed: 7n, numTopLogProbs: 2 }]);
const output = () => makeSamplingOutput(1, 2);

/** Steps of sequences in turn, with copies of blocks and whole forwards in between: all results, `atOnce` steps begun at a time. */
function turns(executor: Executor, network: { inverseFrequencies: Float32Array }, atOnce: number) {
  const results: unknown[] = [];
  const open: (() => void)[] = [];
  const end = (most: number) => {
    while (open.length > most) open.shift()!();
  };
  for (let turn = 0; turn < 12; turn++) {
    const sequence = turn % 3;
    const round = Math.floor(turn / 3);
    const batch = batchOf(network, sequence, 9 + round, round === 0 ? 0 : 8 + round);
    end(atOnce - 1);
    // A copy that is read by the next steps of sequence 0: its first block over its second, which holds nothing yet.
    if (turn === 6) executor.copyBlocks(Int32Array.of(0), Int32Array.of(1));
    if (turn % 4 === 3 && executor.beginForward !== undefined) {
      executor.beginForward(batch);
      open.push(() => {
        const logits = executor.finishForward!();
        const drawn = output();
        executor.sample(rows(), drawn);
        results.push(logits.slice(), drawn);
      });
    } else if (turn % 4 === 3) {
      const logits = executor.forward(batch).slice();
      const drawn = output();
      executor.sample(rows(), drawn);
      results.push(logits, drawn);
    } else {
      const drawn = output();
      executor.begin(batch, rows(), drawn);
      open.push(() => {
        executor.finish();
        results.push(drawn);
      });
    }
    if (executor.beginForward === undefined) end(0);
  }
  end(0);
  results.push(executor.areFinite(Int32Array.of(0, 1, 2, 3, 4, 5)));
  return results;
}

async function open(changes: Partial<TinyShape>, stages: number, tensorParallelSize = 1, gate = 0) {
  const network = networks.make({ numLayers: stages, ...changes });
  const shape = { pipelineParallelSize: stages, tensorParallelSize };
  const { executor } = await groups.open(network, shape, OPTIONS, { gate });
  return { network, executor };
}

describe('steps begun before others are finished', () => {
  test.each([
    { stages: 2, ranks: 1 },
    { stages: 3, ranks: 1 },
    { stages: 2, ranks: 2 },
  ])('$stages stages x $ranks ranks draw bit for bit what one process draws', async ({ stages, ranks }) => {
    const { network, executor } = await open({}, stages, ranks);
    const alone = new NativeExecutor(network, OPTIONS);
    const expected = turns(alone, network, 1);
    alone.close();
    expect(executor.maxBegun).toBe(stages);
    expect(turns(executor, network, stages)).toEqual(expected);
    expect(turns(executor, network, 1)).toEqual(expected);
  });

  test.each([2, 3])('%i stages hold a step each at the same time', async (stages) => {
    // The second stage looks at nothing before as many steps have been begun as there are stages.
    const { network, executor } = await open({}, stages, 1, stages);
    const outputs = Array.from({ length: stages }, output);
    for (const [i, drawn] of outputs.entries()) executor.begin(batchOf(network, i, 5), rows(), drawn);
    for (let i = 0; i < stages; i++) executor.finish();
    for (const [i, drawn] of outputs.entries()) {
      const again = output();
      executor.step(batchOf(network, i, 5), rows(), again);
      expect(drawn).toEqual(again);
    }
  });

  test('more of each than memory between two stages holds: nobody waits for somebody who waits', async () => {
    // Hidden rows and logits of a step are longer than the two slots of an outbox.
    const SLOTS = 2 << 20;
    const options = executorOptions({ threads: 1, maxNumTokens: 1200, maxLogitRows: 120, numBlocks: 80 });
    const network = networks.make({ vocabSize: 5000, hiddenSize: 480, numLayers: 2 });
    const { executor } = await groups.open(network, { pipelineParallelSize: 2 }, options, {
      limitMs: 120_000,
    });
    const tokens = Array.from({ length: 1000 }, (_, i) => i % 100);
    const blocks = Array.from({ length: 70 }, (_, i) => i);
    const batch = makeStepBatch(
      [
        { tokens, cached: 0, blocks: blocks.slice(0, 63), logits: 'none' },
        { tokens: tokens.slice(0, 110), cached: 0, blocks: blocks.slice(63), logits: 'all' },
      ],
      { tokensPerBlock: 16, inverseFrequencies: network.inverseFrequencies, newBlocks: blocks },
    );
    expect(batch.numTokens * 480 * 4).toBeGreaterThan(SLOTS);
    expect(batch.numLogitRows * 5000 * 4).toBeGreaterThan(SLOTS);
    executor.beginForward!(batch);
    executor.beginForward!(batch);
    const first = executor.finishForward!().slice();
    const second = executor.finishForward!().slice();
    const alone = new NativeExecutor(network, options);
    const expected = alone.forward(batch);
    expect(Buffer.compare(Buffer.from(first.buffer), Buffer.from(expected.slice().buffer))).toBe(0);
    expect(Buffer.compare(Buffer.from(second.buffer), Buffer.from(first.buffer))).toBe(0);
    alone.close();
  });
});

describe('between begun steps', () => {
  test('what needs all ranks to be free waits for them, and their results stay', async () => {
    const { network, executor } = await open({}, 2);
    const [a, b, again] = [output(), output(), output()];
    executor.step(batchOf(network, 0, 5), rows(), again);
    const expected = executor.forward(batchOf(network, 1, 5)).slice();
    executor.begin(batchOf(network, 0, 5), rows(), a!);
    executor.beginForward!(batchOf(network, 1, 5));
    // Longer than the memory for calls: it goes in pieces, each of which all ranks answer.
    const many = new Int32Array(600_000);
    executor.copyBlocks(many, many);
    executor.finish();
    expect(a).toEqual(again);
    expect(executor.finishForward!()).toEqual(expected);
    executor.sample(rows(), b!);
    expect(b!.status[0]).toBe(0);
  });

  test('no more are begun than there are stages, and nothing else is called', async () => {
    const { network, executor } = await open({}, 2);
    const batch = batchOf(network, 0, 5);
    executor.begin(batch, rows(), output());
    for (const call of [
      () => executor.step(batch, rows(), output()),
      () => executor.forward(batch),
      () => executor.areFinite(Int32Array.of(0)),
    ]) {
      expect(call).toThrow(RUNNING);
    }
    expect(() => executor.close()).toThrow('cannot be closed while a begun step is running');
    expect(() => executor.finishForward!()).toThrow('A step has been begun; finish() ends it.');
    executor.begin(batchOf(network, 1, 5), rows(), output());
    expect(() => executor.begin(batch, rows(), output())).toThrow(RUNNING);
    executor.finish();
    executor.finish();
    expect(() => executor.finish()).toThrow('No step has been begun');
  });

  test('a batch that is refused leaves the others as they are', async () => {
    const { network, executor } = await open({}, 2);
    const [drawn, again] = [output(), output()];
    executor.begin(batchOf(network, 0, 5), rows(), drawn);
    const bad = { ...batchOf(network, 1, 5), tokenIds: new Int32Array(5).fill(-1) };
    expect(() => executor.begin(bad, rows(), output())).toThrow();
    executor.finish();
    executor.step(batchOf(network, 0, 5), rows(), again);
    expect(drawn).toEqual(again);
  });
});
