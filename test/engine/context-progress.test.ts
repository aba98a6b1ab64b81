import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../callbacks/types.js';
import {
  bool,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  tensorOf,
} from '../../tools/support/loop-harness.js';
import { knownOutputs } from '../support/known-outputs.js';

const PROMPT = Array.from({ length: 40 }, (_, i) => 1 + ((7 * i) % 90));
const CHUNKS: HarnessOptions = { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: 16 };
const PROGRESS: Record<string, Tensor> = { return_context_progress: bool(true) };

/** What the responses of a request are, in order: [done, cached] of progress, and the number of tokens of others. */
function told({ responses }: LoopHarness, id = 1n): (number[] | number)[] {
  return responses
    .filter(({ requestId }) => requestId === id)
    .map(({ outputs }) => {
      const progress = tensorOf(outputs, 'context_progress');
      if (progress === undefined) return tensorOf(outputs, 'output_ids')!.data.length;
      expect(outputs).toHaveLength(1);
      expect(progress.shape).toEqual([1, 3]);
      return Array.from(progress.data as Int32Array).slice(0, 2);
    });
}

const run = (inputs: Record<string, Tensor>, options: HarnessOptions = CHUNKS, length = 3) =>
  new LoopHarness(options).run(makeRequest(1n, PROMPT, length, { ...PROGRESS, ...inputs }));

describe('the progress of a prompt', () => {
  it('comes after each chunk, in front of the first token, and changes nothing else', () => {
    const harness = run({});
    expect(told(harness)).toEqual([[16, 0], [32, 0], [40, 0], 1, 1, 1]);
    const plain = run({ return_context_progress: bool(false) });
    expect(told(plain)).toEqual([1, 1, 1]);
    const rest = harness.responses.filter(({ outputs }) => outputs[0]!.name !== 'context_progress');
    expect(rest).toEqual(plain.responses);
  });

  it('comes in one step for a prompt that is computed in one', () => {
    expect(told(run({}, {}))).toEqual([[40, 0], 1, 1, 1]);
    expect(told(run({}, {}, 1))).toEqual([[40, 0], 1]);
  });

  it.each<[string, Record<string, Tensor>, number[]]>([
    ['a request that does not stream', { streaming: bool(false) }, [64]],
    ['a request that goes on from elsewhere', knownOutputs([[3]]), [1, 1]],
  ])('is not told to %s', (_, inputs, expected) => {
    expect(told(run(inputs))).toEqual(expected);
  });

  it('is not told to beams', () => {
    const found = told(run({ beam_width: i32(2) }, { ...CHUNKS, maxBeamWidth: 2 }));
    expect(found.filter((one) => Array.isArray(one))).toEqual([]);
    expect(found.length).toBeGreaterThan(0);
  });

  it('comes once for several sequences', () => {
    const found = told(run({ num_return_sequences: i32(3) }, { ...CHUNKS, maxNumSequences: 4 }));
    expect(found.slice(0, 3)).toEqual([
      [16, 0],
      [32, 0],
      [40, 0],
    ]);
    expect(found.slice(3).every((one) => one === 1 || one === 0)).toBe(true);
  });

  it('begins behind the part found in the cache, and counts it', () => {
    const harness = run({ return_context_progress: bool(false) }, { ...CHUNKS, enableBlockReuse: true });
    harness.run(makeRequest(2n, [...PROMPT.slice(0, 17), 5, 6, 7, ...PROMPT.slice(20)], 1, PROGRESS));
    expect(told(harness, 2n)).toEqual([[33, 17], [40, 17], 1]);
    const last = harness.responses.at(-1)!.outputs;
    expect(tensorOf(last, 'cached_tokens')!.data[0]).toBe(17);
  });

  it.each([false, true])('never goes back when the request is paused (overlap: %s)', (enableTrtOverlap) => {
    const options: HarnessOptions = {
      ...CHUNKS,
      schedulerPolicy: 'MAX_UTILIZATION',
      numBlocks: 12,
      maxNumSequences: 3,
      enableTrtOverlap,
    };
    const harness = new LoopHarness(options);
    const requests = [1n, 2n, 3n].map((id) => makeRequest(id, PROMPT, 20, PROGRESS));
    harness.run(...requests);
    const pauses = harness.stats.reduce((sum, { pausedRequests }) => sum + pausedRequests, 0);
    expect(pauses).toBeGreaterThan(0);
    for (const { requestId } of requests) {
      const found = told(harness, requestId);
      const progress = found.filter((one) => Array.isArray(one)).map(([done]) => done!);
      expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
      expect(progress.at(-1)).toBe(PROMPT.length);
      expect(found.slice(0, progress.length).every((one) => Array.isArray(one))).toBe(true);
      expect(harness.resultOf(requestId).tokens).toHaveLength(20);
    }
  });

  it('has the time since the request first ran, and ends with the request', () => {
    const harness = new LoopHarness(CHUNKS);
    harness.waiting.push(makeRequest(1n, PROMPT, 2, PROGRESS));
    harness.loop.iterate();
    harness.nowMs = 5;
    harness.stops.add(1n);
    harness.runToEnd();
    const [first, second] = harness.responses.map(
      ({ outputs }) => tensorOf(outputs, 'context_progress')?.data,
    );
    expect([...first!]).toEqual([16, 0, 0]);
    expect([...second!]).toEqual([32, 0, 5]);
    expect(harness.resultOf(1n)).toMatchObject({ tokens: [], finishReason: 5 });
  });
});
