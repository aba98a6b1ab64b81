import { describe, expect, it } from 'vitest';
import type { Executor } from '../../../engine/executors/executor.js';
import { CALL_HEADER } from '../../../engine/packed-call/call-header.js';
import {
  bool,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
} from '../../../tools/support/loop-harness.js';

type Step = Parameters<Executor['step']>;

/** Runs three requests to their ends, and looks at each call on its way to the executor. */
function watch(options: HarnessOptions, look: (...step: Step) => void): void {
  const harness = new LoopHarness(options);
  const { executor } = harness;
  for (const name of ['step', 'begin'] as const) {
    const run = executor[name].bind(executor);
    executor[name] = (...call: Step) => {
      look(...call);
      run(...call);
    };
  }
  for (const id of [1n, 2n, 3n]) {
    harness.waiting.push(
      makeRequest(id, [1, 2, 3, 4], 5, { repetition_penalty: { shape: [1], data: Float32Array.of(1.5) } }),
    );
  }
  harness.runToEnd();
  for (const id of [1n, 2n, 3n]) expect(harness.resultOf(id).tokens).toHaveLength(5);
}

describe('PackedCall', () => {
  it('packs all that the executor computes, and where to, into one piece of memory with its counts in front', () => {
    let steps = 0;
    watch({}, (batch, sampling, output) => {
      const { buffer } = batch.tokenIds;
      for (const array of [batch.ropeRows, sampling.seed, sampling.history, sampling.banned]) {
        expect(array.buffer).toBe(buffer);
      }
      for (const array of [output.tokens, output.status, output.topTokens]) expect(array.buffer).toBe(buffer);
      const header = new Int32Array(buffer, 0, 5);
      expect(header[CALL_HEADER.numTokens]).toBe(batch.numTokens);
      expect(header[CALL_HEADER.numSequences]).toBe(batch.numSequences);
      expect(header[CALL_HEADER.numLogitRows]).toBe(batch.numLogitRows);
      expect(header[CALL_HEADER.numNewBlocks]).toBe(batch.numNewBlocks);
      expect(header[CALL_HEADER.numRows]).toBe(sampling.numRows);
      expect(sampling.numRows).toBeGreaterThan(0);
      steps++;
    });
    expect(steps).toBe(5);
  });

  it('has memory of its own beside a call that runs', () => {
    const buffers = new Set<ArrayBufferLike>();
    watch(
      { enableTrtOverlap: true, minMicroBatchSize: 1 },
      ({ tokenIds }) => void buffers.add(tokenIds.buffer),
    );
    expect(buffers.size).toBe(2);
  });

  it('gives a request more most probable tokens than its memory has room for', () => {
    const harness = new LoopHarness({ maxBatchSize: 1, maxNumSequences: 1 }).run(
      makeRequest(1n, [1, 2], 2, { return_log_probs: bool(true), top_log_probs: i32(30) }),
    );
    const { topTokens } = harness.resultOf(1n);
    expect(topTokens).toHaveLength(60);
    expect(new Set(topTokens.slice(0, 30)).size).toBe(30);
  });
});
