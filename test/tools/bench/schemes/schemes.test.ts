import { describe, expect, it } from 'vitest';
import type { ModelType } from '../../../../callbacks/gpt-manager-options.js';
import { RopeTable } from '../../../../engine/batch/rope-table.js';
import { FakeExecutor } from '../../../../engine/executors/fake/fake-executor.js';
import { paddingRoom } from '../../../../engine/schemes/padding-room.js';
import { runScheme, type SchemeTime } from '../../../../tools/bench/schemes/run-scheme.js';
import {
  longestSequence,
  poissonArrivals,
  type WorkloadOptions,
} from '../../../../tools/bench/schemes/workload.js';

const WORKLOAD: WorkloadOptions = {
  requests: 400,
  rate: 10,
  promptTokens: [4, 20],
  newTokens: 8,
  vocabSize: 100,
  seed: 7,
};

/** Rounding error of sums of times since 1970. */
const ROUNDING_MS = 0.01;

/** A clock that advances by a fifth of a millisecond whenever it is read. */
function steppedTime(): SchemeTime {
  let nowMs = 1e12;
  return {
    now: () => (nowMs += 0.2),
    sleep: (ms) => {
      nowMs += ms;
    },
  };
}

describe('poissonArrivals', () => {
  it('is the same for a seed; the rate only stretches the arrivals', () => {
    const arrivals = poissonArrivals(WORKLOAD);
    expect(poissonArrivals(WORKLOAD)).toEqual(arrivals);
    const faster = poissonArrivals({ ...WORKLOAD, rate: 20 });
    expect(faster.map(({ request }) => request)).toEqual(arrivals.map(({ request }) => request));
    for (const [i, { atMs }] of faster.entries()) expect(atMs).toBeCloseTo(arrivals[i]!.atMs / 2, 6);
  });

  it('has the rate and the lengths that were asked for', () => {
    const arrivals = poissonArrivals(WORKLOAD);
    const times = arrivals.map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(400 / (times.at(-1)! / 1000)).toBeCloseTo(10, -0.5);
    const prompts = arrivals.map(({ request }) => request.inputs.input_ids!.data.length);
    expect([Math.min(...prompts), Math.max(...prompts)]).toEqual([4, 20]);
    const lengths = arrivals.map(({ request }) => Number(request.inputs.request_output_len!.data[0]));
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(1);
    expect(20 + Math.max(...lengths)).toBeLessThanOrEqual(longestSequence(WORKLOAD));
  });
});

describe('runScheme', () => {
  it.each<ModelType>(['V1', 'InflightBatching', 'InflightFusedBatching'])('ends with %s', (modelType) => {
    const maxNumSequences = 8;
    const maxSeqLen = longestSequence(WORKLOAD);
    const sizes = { maxNumTokens: 160, tokensPerBlock: 8 };
    const padding = paddingRoom('V1', { ...sizes, maxSequences: maxNumSequences });
    const numBlocks = maxNumSequences * Math.ceil(maxSeqLen / 8);
    const executor = new FakeExecutor({
      ...sizes,
      threads: 1,
      maxNumSequences: maxNumSequences + padding.sequences,
      maxLogitRows: maxNumSequences,
      maxSeqLen,
      numBlocks: numBlocks + padding.blocks,
      firstPaddingBlock: numBlocks,
      kvDtype: 'f32',
      vocabSize: 100,
    });
    const rope = new RopeTable({ inverseFrequencies: Float32Array.of(1), scale: 1 }, null, maxNumSequences);
    const time = steppedTime();
    const setup = { modelType, executor, rope, numBlocks, maxNumSequences, maxSeqLen, time };
    const arrivals = poissonArrivals({ ...WORKLOAD, requests: 20, rate: 1000 });
    const result = runScheme({ ...setup, maxNumTokens: sizes.maxNumTokens }, arrivals);
    expect(result.latenciesMs).toHaveLength(20);
    expect(result.firstTokensMs).toHaveLength(20);
    expect(result.tokensPerSecond).toBeGreaterThan(0);
    for (const { arrivalMs, promptTokens, chunks, firstTokenMs, lastTokenMs, endMs } of result.courses) {
      expect(chunks.length).toBeGreaterThanOrEqual(1);
      if (promptTokens < 8) expect(chunks).toHaveLength(1);
      const times = [arrivalMs, chunks[0]![0], chunks.at(-1)![1], lastTokenMs, endMs];
      for (const [i, ms] of times.slice(1).entries()) expect(ms - times[i]!).toBeGreaterThan(-ROUNDING_MS);
      expect(lastTokenMs).toBeGreaterThanOrEqual(firstTokenMs);
    }
    const waited = result.courses.filter(({ lastTokenMs, endMs }) => endMs > lastTokenMs);
    if (modelType === 'V1') expect(waited.length).toBeGreaterThan(5);
    else expect(waited).toEqual([]);
    if (modelType === 'V1') expect(result.emptyShare).toBeGreaterThan(0.1);
    else expect(result.emptyShare).toBe(0);
  });
});
