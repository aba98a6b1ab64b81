import { describe, expect, it } from 'vitest';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import {
  f32,
  type HarnessAdapters,
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  u64,
} from '../../tools/support/loop-harness.js';
import { bringing, fakeAdapter, loraCrowd, naming } from '../support/lora-requests.js';
import { RandomDrafts } from '../support/random-drafts.js';

/** Room for three adapters on the device, and for many on the host. */
const THREE: HarnessAdapters = { slots: 3, hostPages: 32, devicePages: 3 };
const ADAPTERS: HarnessOptions = { adapters: THREE };

/** Answers of requests that run alone without further options: one crowd serves many settings. */
const known = new WeakMap<InferenceRequest, ReturnType<typeof runAlone>>();

function answerAlone(request: InferenceRequest, options: HarnessOptions | null) {
  const all = { ...options, ...ADAPTERS, numBlocks: 64, enableTrtOverlap: false };
  if (options !== null) return runAlone(request, all);
  const answer = known.get(request) ?? runAlone(request, all);
  known.set(request, answer);
  return answer;
}

function expectSameAsAlone(
  harness: LoopHarness,
  alone: readonly InferenceRequest[],
  options: HarnessOptions | null = null,
) {
  for (const request of alone) {
    const expected = answerAlone(request, options);
    expect(expected.error).toBe('');
    // V1 sends the last response of a request with those of its batch.
    const { numResponses: _, ...answer } = harness.resultOf(request.requestId);
    expect(expected).toMatchObject(answer);
  }
}

/** Nothing is in use any more, and everything can be evicted: a new adapter as large as the whole cache finds room. */
function expectNothingHeld({ adapters, kvCache, loop }: LoopHarness): void {
  expect(loop.activeRequests).toBe(0);
  expect(kvCache.freeBlocks).toBe(kvCache.numBlocks);
  adapters!.checkIntegrity();
  const { maxPages } = adapters!.room;
  expect(maxPages).toBe(3);
  const use = adapters!.admit(2n ** 63n, fakeAdapter(99, 4));
  expect(adapters!.ensure([2n ** 63n])).toEqual([]);
  adapters!.endStep([2n ** 63n]);
  adapters!.release(use);
}

describe('64 requests over 20 adapters with room for 3', () => {
  const settings: [string, HarnessOptions][] = [
    ['GUARANTEED_NO_EVICT', { schedulerPolicy: 'GUARANTEED_NO_EVICT' }],
    ['MAX_UTILIZATION', { schedulerPolicy: 'MAX_UTILIZATION' }],
    ['a small pool', { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 9 }],
    ['a horizon', { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 9, startHorizon: 8 }],
    ['chunks', { schedulerPolicy: 'MAX_UTILIZATION', chunkingPolicy: 'EQUAL_PROGRESS', maxNumTokens: 16 }],
    ['two micro-batches', { enableTrtOverlap: true, minMicroBatchSize: 1 }],
    ['three stages', { stages: 3 }],
    [
      'two micro-batches that pause',
      { enableTrtOverlap: true, minMicroBatchSize: 2, schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 12 },
    ],
    ['InflightBatching', { modelType: 'InflightBatching', schedulerPolicy: 'MAX_UTILIZATION' }],
    ['V1', { modelType: 'V1' }],
    ['ageing', { schedulerPolicy: 'GUARANTEED_NO_EVICT', maxWaitIterations: 3 }],
  ];

  const { alone } = loraCrowd(64, 20);

  it.each(settings)('%s: each gets the answer that it gets alone', (_, options) => {
    const { sent } = loraCrowd(64, 20);
    const harness = new LoopHarness({ ...ADAPTERS, ...options }).run(...sent);
    expectSameAsAlone(harness, alone);
    if ((options.numBlocks ?? 64) < 64) expect(harness.stats.at(-1)!.totalPauses).toBeGreaterThan(0);
    expect(harness.executor.adapters!.numPuts).toBeGreaterThanOrEqual(20);
    expect(harness.executor.adapters!.numFilled).toBeLessThanOrEqual(3);
    expectNothingHeld(harness);
  });

  it.each([0, 6])(
    'with block reuse and %i secondary blocks: nothing is shared between adapters',
    (numSecondaryBlocks) => {
      const options: HarnessOptions = {
        enableBlockReuse: true,
        numSecondaryBlocks,
        numBlocks: 20,
        schedulerPolicy: 'MAX_UTILIZATION',
      };
      // The second half asks the same again, so that there is something to find.
      const { sent } = loraCrowd(64, 20, () => ({}));
      const again = alone.map((request) => ({ ...request, requestId: request.requestId + 64n }));
      const harness = new LoopHarness({ ...ADAPTERS, ...options }).run(...sent, ...again);
      for (const request of alone) {
        const { tokens } = answerAlone(request, null);
        expect(harness.resultOf(request.requestId)).toMatchObject({ tokens, error: '' });
        expect(harness.resultOf(request.requestId + 64n)).toMatchObject({ tokens, error: '' });
      }
      expect(harness.stats.reduce((sum, { reusedTokens }) => sum + reusedTokens, 0)).toBeGreaterThan(0);
      expectNothingHeld(harness);
    },
  );

  it('with drafts, which know nothing of adapters', () => {
    const { sent } = loraCrowd(64, 20);
    const answers = new Map(alone.map((request) => [request.requestId, answerAlone(request, null).tokens]));
    const promptOf = ({ inputs }: InferenceRequest) => Array.from(inputs.input_ids!.data as Int32Array);
    const drafts = new RandomDrafts(4711, 100, (id) => [
      ...promptOf(alone[Number(id)]!),
      ...answers.get(id)!,
    ]);
    const options: HarnessOptions = { drafts, maxDraftRows: 24, schedulerPolicy: 'MAX_UTILIZATION' };
    const harness = new LoopHarness({ ...ADAPTERS, ...options }).run(...sent);
    for (const [id, tokens] of answers) expect(harness.resultOf(id)).toMatchObject({ tokens, error: '' });
    const accepted = harness.stats.reduce((sum, { acceptedDraftTokens }) => sum + acceptedDraftTokens, 0);
    expect(accepted).toBeGreaterThan(100);
    expectNothingHeld(harness);
  });

  it('with samples and beams: all sequences of a request have its adapter', () => {
    const more = (i: number): Record<string, Tensor> =>
      i % 3 === 0
        ? { beam_width: i32(2), streaming: { shape: [1], data: Uint8Array.of(0) } }
        : i % 3 === 1
          ? { num_return_sequences: i32(3), temperature: f32(0.8), random_seed: u64(BigInt(i)) }
          : {};
    const options: HarnessOptions = { maxBeamWidth: 3, schedulerPolicy: 'MAX_UTILIZATION' };
    const { sent, alone } = loraCrowd(40, 10, more);
    const harness = new LoopHarness({ ...ADAPTERS, ...options, numBlocks: 40 }).run(...sent);
    for (const request of alone) {
      const of = (one: LoopHarness) =>
        [0, 1, 2].map((index) => {
          try {
            return one.sequenceOf(request.requestId, index).tokens;
          } catch {
            return null;
          }
        });
      const expected = of(new LoopHarness({ ...ADAPTERS, ...options }).run(request));
      expect(of(harness)).toEqual(expected);
      expect(
        harness.responses.some(({ requestId, error }) => requestId === request.requestId && error !== ''),
      ).toBe(false);
    }
    expectNothingHeld(harness);
  });
});

describe('an adapter', () => {
  const ask = (inputs: Record<string, Tensor>, id = 1n) => makeRequest(id, [1, 2, 3], 6, inputs);

  it('changes the answer, each another way, and a request without one is answered as ever', () => {
    const [plain, first, second, larger] = [
      runAlone(ask({})),
      ...[fakeAdapter(1), fakeAdapter(2), fakeAdapter(1, 4)].map((adapter) =>
        runAlone(ask(bringing(7n, adapter)), ADAPTERS),
      ),
    ].map(({ tokens }) => tokens);
    expect(new Set([plain, first, second, larger].map(String)).size).toBe(4);
    const beside = new LoopHarness(ADAPTERS).run(ask(bringing(7n, fakeAdapter(1)), 1n), ask({}, 2n));
    expect(beside.resultOf(1n).tokens).toEqual(first);
    expect(beside.resultOf(2n).tokens).toEqual(plain);
  });

  it('goes on with tokens that another engine has generated', () => {
    const whole = runAlone(ask(bringing(7n, fakeAdapter(1))), ADAPTERS);
    const known = { shape: [1, 3], data: Int32Array.from(whole.tokens.slice(0, 3)) };
    const harness = new LoopHarness(ADAPTERS);
    harness.run(ask({ ...bringing(7n, fakeAdapter(1)), known_output_ids: known }));
    expect(harness.resultOf(1n).tokens).toEqual(whole.tokens.slice(3));
    expectNothingHeld(harness);
  });

  it('that the cache does not hold is asked for again, and taken then', () => {
    const harness = new LoopHarness({ adapters: { slots: 3, hostPages: 3, devicePages: 3 } });
    harness.run(ask(naming(1n)));
    expect(harness.resultOf(1n).error).toBe(
      'lora_task_id is 1, and the cache of adapters does not hold that one, or no longer; send lora_weights and lora_config with the request (again).',
    );
    expect(harness.responses[0]!.failure).toMatchObject({ kind: 'adapter', field: 'lora_task_id' });
    for (let task = 1n; task <= 4n; task++)
      harness.run(ask(bringing(task, fakeAdapter(Number(task))), 10n + task));
    harness.run(ask(naming(4n), 20n), ask(naming(1n), 21n));
    expect(harness.resultOf(20n).error).toBe('');
    expect(harness.resultOf(21n).error).toContain('(again)');
    harness.run(ask(bringing(1n, fakeAdapter(1)), 22n));
    expect(harness.resultOf(22n).tokens).toEqual(harness.resultOf(11n).tokens);
    expectNothingHeld(harness);
  });

  it('may get other weights once nobody uses it, and finds nothing that the former ones left', () => {
    const options: HarnessOptions = { ...ADAPTERS, enableBlockReuse: true };
    const long = (id: bigint, seed: number) =>
      makeRequest(
        id,
        Array.from({ length: 30 }, (_, i) => i + 1),
        6,
        bringing(7n, fakeAdapter(seed)),
      );
    const harness = new LoopHarness(options);
    harness.run(long(1n, 1));
    harness.run(long(2n, 2));
    harness.run(long(3n, 1));
    expect(harness.resultOf(2n)).toEqual(runAlone(long(2n, 2), options));
    expect(harness.resultOf(2n).tokens).not.toEqual(harness.resultOf(1n).tokens);
    expect(harness.resultOf(3n).tokens).toEqual(harness.resultOf(1n).tokens);
    // The blocks of the first weights are found by the same weights again.
    expect(harness.stats.map(({ reusedTokens }) => reusedTokens).filter((tokens) => tokens > 0)).toEqual([
      29,
    ]);
    harness.waiting.push(long(4n, 1));
    harness.loop.iterate();
    harness.run(long(5n, 2), long(6n, 1));
    expect(harness.resultOf(5n).error).toMatch(
      /^lora_task_id is 7, and 1 requests in flight use that adapter with other/,
    );
    for (const id of [4n, 6n]) expect(harness.resultOf(id).tokens).toEqual(harness.resultOf(1n).tokens);
    expectNothingHeld(harness);
  });

  it('waits for room on the host as an error that says so', () => {
    const harness = new LoopHarness({ adapters: { slots: 3, hostPages: 3, devicePages: 3 } });
    const tasks = [1n, 2n, 3n, 4n];
    harness.run(...tasks.map((task) => ask(bringing(task, fakeAdapter(Number(task))), task)));
    expect(harness.resultOf(4n).error).toBe(
      'lora_weights takes 1 pages of the host cache of adapters; requests in flight use 3 of its 3 (peftCacheManagerConfig.hostCacheSize); try again later.',
    );
    expect(harness.responses.find(({ requestId }) => requestId === 4n)!.failure).toMatchObject({
      kind: 'overloaded',
    });
    for (const task of tasks.slice(0, 3)) expect(harness.resultOf(task).error).toBe('');
    harness.run(ask(bringing(4n, fakeAdapter(4)), 5n));
    expect(harness.resultOf(5n).error).toBe('');
    expectNothingHeld(harness);
  });
});

describe('a request whose adapter has no room while others keep coming', () => {
  const settings: [string, HarnessOptions][] = [
    ['MAX_UTILIZATION', { schedulerPolicy: 'MAX_UTILIZATION' }],
    [
      'MAX_UTILIZATION with two micro-batches',
      { schedulerPolicy: 'MAX_UTILIZATION', enableTrtOverlap: true, minMicroBatchSize: 1 },
    ],
    ['GUARANTEED_NO_EVICT with maxWaitIterations', { maxWaitIterations: 20 }],
    [
      'GUARANTEED_NO_EVICT with maxWaitIterations and two micro-batches',
      { maxWaitIterations: 20, enableTrtOverlap: true, minMicroBatchSize: 1 },
    ],
  ];

  it.each(settings)('%s: it runs to its end all the same', (_, options) => {
    const harness = new LoopHarness({
      adapters: { slots: 2, hostPages: 8, devicePages: 2 },
      maxNumSequences: 8,
      ...options,
    });
    let next = 10n;
    const feed = () => {
      for (; harness.waiting.length < 4; next++) {
        const task = 1 + Number(next % 2n);
        const inputs = bringing(BigInt(task), fakeAdapter(task));
        harness.waiting.push(makeRequest(next, [Number(next % 90n), 1], 7, inputs));
      }
    };
    feed();
    harness.loop.iterate();
    harness.waiting.unshift(makeRequest(3n, [1, 2], 5, bringing(3n, fakeAdapter(3))));
    const hasEnded = () => harness.responses.some(({ requestId, final }) => requestId === 3n && final);
    for (let iteration = 0; iteration < 200 && !hasEnded(); iteration++) {
      feed();
      harness.loop.iterate();
    }
    expect(hasEnded()).toBe(true);
    expect(harness.resultOf(3n)).toMatchObject({ error: '', finishReason: 3 });
    expect(harness.responses.length).toBeGreaterThan(20);
  });
});
