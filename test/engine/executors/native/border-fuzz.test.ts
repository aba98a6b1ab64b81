import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConvertJob } from '../../../../engine/directory/convert-job.js';
import type { NativeExecutorOptions } from '../../../../engine/executors/native/addon.js';
import { loadAddon } from '../../../../engine/executors/native/load-addon.js';
import type { PackedBatch } from '../../../../engine/packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../../../engine/packed-call/sampling-batch.js';
import { copyOf, fuzzRuns, mutate } from '../../../../tools/support/mutate.js';
import { Random } from '../../../../tools/support/random.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { makeTinyNetwork, type TinyNetwork } from '../../../../tools/support/tiny-network.js';
import { NATIVE } from '../../../support/executors.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { instructionSets } from '../../../support/native-options.js';
import { SmallExecutor } from '../../../support/small-executor.js';

const VOCABULARY = 131;
let small: SmallExecutor;
let network: TinyNetwork;
const folder = temporaryFolder('skein-border');

beforeAll(async () => {
  small = await SmallExecutor.open(NATIVE, true);
  network = makeTinyNetwork({ bias: true, varied: true, stateful: true });
});
afterAll(() => {
  small.close();
  network.remove();
});

/** A batch that asks for all that a batch may. */
function fullBatch(): PackedBatch {
  const table = new Float32Array(2 * small.executor.promptRowWidth).fill(0.25);
  return {
    ...small.validBatch(),
    promptTables: [{ first: 1, count: 2, table }],
    tokenTypes: new Int32Array(4),
    snapshotStart: Int32Array.of(0, 1, 2),
    snapshotRows: Int32Array.of(1, 3),
    snapshotSlots: Int32Array.of(2, 3),
    returnedRows: [
      { of: 'tokens', first: 0, count: 2, logits: new Float32Array(2 * VOCABULARY), logProbs: null },
      {
        of: 'logitRows',
        first: 0,
        count: 2,
        logits: null,
        logProbs: {
          tokens: Int32Array.of(3, -1),
          logProbs: new Float32Array(2),
          numTop: 2,
          topTokens: new Int32Array(4),
          topLogProbs: new Float32Array(4),
        },
      },
    ],
  };
}

/** Two rows that ask for all that rows may. */
function fullSampling(): SamplingBatch {
  const logits = new Float32Array(VOCABULARY).fill(-1);
  return makeSamplingBatch(
    [
      {
        temperature: 0.8,
        topK: 20,
        topP: 0.9,
        minP: 0.01,
        repetitionPenalty: 1.1,
        presencePenalty: 0.1,
        frequencyPenalty: 0.1,
        noRepeatNgramSize: 2,
        bias: { tokens: Int32Array.of(1, 5), values: Float32Array.of(1, -1) },
        draft: { token: 4, logits },
        seed: 7n,
        banned: [3, 9],
        allowed: Array.from({ length: 100 }, (_, i) => i),
        numTopLogProbs: 3,
        prompt: [1, 2, 3, 1, 2],
        generated: [3, 1],
      },
      {
        temperature: 0.5,
        bias: { tokens: null, values: new Float32Array(VOCABULARY).fill(0.5) },
        numTopLogProbs: 4,
        listsCandidates: true,
        prompt: [-1, 8],
      },
    ],
    VOCABULARY,
  );
}

const fullOutput = (): SamplingOutput => makeSamplingOutput(2, 7);

/** `action` runs, or throws an error with a sentence. @throws naming the input otherwise. */
function runsOrRefuses(action: () => unknown, input: string): boolean {
  try {
    action();
    return true;
  } catch (error) {
    const isSentence = error instanceof Error && /^\S.*\S.*[.!"]?$/s.test(error.message);
    if (!isSentence) throw new Error(`${input}: ${String(error)}`, { cause: error });
    return false;
  }
}

function mutations(target: object, random: Random): string {
  return Array.from({ length: 1 + random.below(3) }, () => mutate(target, random)).join(', ');
}

describe('what JavaScript hands to the addon', () => {
  it('the full batch and its rows are taken', () => {
    small.executor.step(fullBatch(), fullSampling(), fullOutput());
  });

  it('a changed batch or sampling is computed or refused, and the next one gives the same bits', ({
    task,
  }) => {
    const runs = fuzzRuns(2000);
    // Only the first sequence is compared, a whole prompt: the second one's cache may have been overwritten.
    const validRow = () => small.executor.forward(small.validBatch()).slice(0, VOCABULARY);
    const valid = validRow();
    let ran = 0;
    for (let run = 0; run < runs; run++) {
      const random = new Random(run);
      const step = copyOf({ batch: fullBatch(), sampling: fullSampling(), output: fullOutput() });
      const changed = mutations(step, random);
      const { batch, sampling, output } = step;
      const ways = [
        () => small.executor.step(batch, sampling, output),
        () => {
          small.executor.begin(batch, sampling, output);
          small.executor.finish();
        },
        () => {
          small.executor.forward(batch);
          small.executor.sample(sampling, output);
        },
      ];
      if (runsOrRefuses(ways[run % 3]!, `run ${run} (${changed})`)) ran++;
      if (run % 100 === 0) expect(validRow()).toEqual(valid);
    }
    expect(validRow()).toEqual(valid);
    // Both happen: neither are all of them refused, nor none.
    expect(ran).toBeGreaterThan(runs / 20);
    expect(ran).toBeLessThan(runs);
    task.meta.tried = { what: 'inputs', count: runs };
  });

  it('blocks and states that are copied or looked at exist, or are refused', ({ task }) => {
    const runs = fuzzRuns(300);
    for (let run = 0; run < runs; run++) {
      const lists = { source: Int32Array.of(0, 1), target: Int32Array.of(2, 3), blocks: Int32Array.of(0, 3) };
      const changed = mutations(lists, new Random(run));
      runsOrRefuses(() => small.executor.copyBlocks(lists.source, lists.target), `run ${run} (${changed})`);
      runsOrRefuses(() => small.executor.areFinite(lists.blocks), `run ${run} (${changed})`);
      runsOrRefuses(() => small.executor.copyStates!(lists.source, lists.target), `run ${run} (${changed})`);
      runsOrRefuses(() => small.executor.areStatesFinite!(lists.blocks), `run ${run} (${changed})`);
    }
    task.meta.tried = { what: 'inputs', count: runs };
  });

  it('changed options make an executor that computes, or are refused', ({ task }) => {
    const runs = fuzzRuns(300);
    const { createExecutor, measureExecutor } = loadAddon();
    let made = 0;
    for (let run = 0; run < runs; run++) {
      const options = copyOf(optionsOf(run));
      const changed = mutations(options, new Random(run));
      runsOrRefuses(() => measureExecutor(options), `run ${run} (${changed})`);
      runsOrRefuses(() => {
        const executor = createExecutor(options);
        made++;
        try {
          executor.step(small.validBatch(), makeSamplingBatch([{}, {}]), makeSamplingOutput(2));
        } finally {
          executor.close();
        }
      }, `run ${run} (${changed})`);
    }
    expect(made).toBeGreaterThan(0);
    expect(made).toBeLessThan(runs);
    task.meta.tried = { what: 'inputs', count: runs };
  });

  it('a changed conversion is done or refused', ({ task }) => {
    const runs = fuzzRuns(600);
    const { convert } = loadAddon();
    const [source, target] = [join(folder, 'source.bin'), join(folder, 'target.bin')];
    writeFileSync(source, new Uint8Array(4096));
    writeFileSync(target, new Uint8Array(8192));
    let done = 0;
    for (let run = 0; run < runs; run++) {
      const call = { jobs: [jobOf(source, run), jobOf(source, run + 1)], threads: 2 };
      const changed = mutations(call, new Random(run));
      if (runsOrRefuses(() => convert(target, call.jobs, call.threads), `run ${run} (${changed})`)) done++;
    }
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(runs);
    task.meta.tried = { what: 'inputs', count: runs };
  });
});

/** Options of a small executor; instruction sets, caches and windows take turns. */
function optionsOf(run: number): NativeExecutorOptions {
  const { plan, tensors, weightsFile } = network;
  return {
    plan,
    weightsFile,
    tensors,
    packedFile: join(folder, `packed-${run % instructionSets.length}.bin`),
    instructionSet: instructionSets[run % instructionSets.length]!,
    threads: 1 + (run % 3),
    maxNumTokens: 8,
    maxNumSequences: 2,
    maxLogitRows: 4,
    maxSeqLen: 40,
    numBlocks: 4,
    tokensPerBlock: 16,
    kvDtype: (['f32', 'bf16', 'int8'] as const)[run % 3]!,
    maxAttentionWindow: run % 4 === 0 ? 24 : 0,
    sinkTokenLength: 0,
    numStateSlots: 4,
    maxAdapters: run % 2,
    maxLoraRank: 4,
    processors: 2,
    computeWeight: 1,
    heartbeat: new Int32Array(1),
  };
}

function jobOf(source: string, run: number): ConvertJob {
  const rows = 4;
  const columns = 64;
  return {
    source,
    sourceOffset: 0,
    sourceByteLength: rows * columns * 4,
    type: 'F32',
    rows,
    columns,
    interleavedHeads: run % 3 === 0 ? 2 : 0,
    transposed: run % 3 === 1,
    addend: run % 2,
    factor: 1 + (run % 3),
    targetOffset: 1024 * (run % 2),
    targetType: (['f32', 'bf16', 'int8', 'int4'] as const)[run % 4]!,
  };
}
