import type { InferenceRequest } from 'skein';
import { describe, expect, it } from 'vitest';
import { FINISH_CANCELLED, FINISH_TIMED_OUT } from '../../callbacks/response-batch.js';
import {
  type HarnessOptions,
  i32,
  LoopHarness,
  makeRequest,
  runAlone,
  tensorOf,
} from '../../tools/support/loop-harness.js';

const TOKENS_PER_BLOCK = 8;
const TARGET = 1n;
const LIMIT_MS = 1000;

interface State {
  /** Place of the request when it is asked to stop. */
  name: string;
  options: HarnessOptions;
  /** Requests before it or next to it. */
  others?: InferenceRequest[];
  prompt: number[];
  maxNewTokens: number;
  /** It arrives after this many iterations, default 0, and is in its state after another number of them. */
  arrivesAfter?: number;
  iterations: number | ((harness: LoopHarness) => boolean);
  /** Tokens that it has been given when it ends: what its last iteration adds included. */
  tokens: number;
  hasBlocks: boolean;
}

const prompt = (length: number, first = 1) => Array.from({ length }, (_, i) => (first + i) % 50);
const chunks = { chunkingPolicy: 'FIRST_COME_FIRST_SERVED', maxNumTokens: TOKENS_PER_BLOCK } as const;
const other = makeRequest(2n, [60], 30);

const STATES: State[] = [
  {
    name: 'waiting for a place in the batch',
    options: { maxBatchSize: 1 },
    others: [other],
    prompt: prompt(4),
    maxNewTokens: 5,
    iterations: 3,
    tokens: 0,
    hasBlocks: false,
  },
  {
    name: 'waiting for blocks',
    options: { numBlocks: 8 },
    others: [makeRequest(2n, prompt(8, 20), 40)],
    prompt: prompt(16),
    maxNewTokens: 20,
    iterations: 3,
    tokens: 0,
    hasBlocks: false,
  },
  {
    name: 'waiting for a block that another one is about to write',
    options: { ...chunks, enableBlockReuse: true, maxNumTokens: 24 },
    others: [makeRequest(2n, prompt(32), 5)],
    prompt: prompt(32),
    maxNewTokens: 5,
    iterations: 1,
    tokens: 0,
    hasBlocks: false,
  },
  {
    name: 'in its context',
    options: {},
    others: [other],
    prompt: prompt(20),
    maxNewTokens: 5,
    arrivesAfter: 3,
    iterations: 0,
    tokens: 1,
    hasBlocks: true,
  },
  {
    name: 'between two chunks of its context',
    options: chunks,
    prompt: prompt(40),
    maxNewTokens: 5,
    iterations: 2,
    tokens: 0,
    hasBlocks: true,
  },
  {
    name: 'generating',
    options: {},
    others: [other],
    prompt: prompt(4),
    maxNewTokens: 30,
    iterations: 5,
    tokens: 6,
    hasBlocks: true,
  },
  {
    name: 'paused',
    options: { schedulerPolicy: 'MAX_UTILIZATION', numBlocks: 8 },
    others: [makeRequest(2n, prompt(16, 20), 40)],
    prompt: prompt(24),
    maxNewTokens: 30,
    iterations: ({ stats }) => (stats.at(-1)?.pausedRequests ?? 0) > 0,
    tokens: -1,
    hasBlocks: false,
  },
  {
    name: 'in the hold of its batch, complete',
    options: { modelType: 'V1' },
    others: [other],
    prompt: prompt(4),
    maxNewTokens: 3,
    iterations: 8,
    tokens: 3,
    hasBlocks: true,
  },
  {
    name: 'waiting for the batch of others to end',
    options: { modelType: 'V1' },
    others: [other],
    prompt: prompt(4),
    maxNewTokens: 3,
    arrivesAfter: 2,
    iterations: 3,
    tokens: 0,
    hasBlocks: false,
  },
];

/** A loop in which the request stands in that state. */
function reach(state: State, inputs: InferenceRequest['inputs'] = {}): LoopHarness {
  const { options, others = [], arrivesAfter = 0, iterations } = state;
  const harness = new LoopHarness({ tokensPerBlock: TOKENS_PER_BLOCK, ...options });
  harness.waiting.push(...others);
  for (let i = 0; i < arrivesAfter; i++) harness.loop.iterate();
  harness.waiting.push(makeRequest(TARGET, state.prompt, state.maxNewTokens, inputs));
  const isThere =
    typeof iterations === 'number' ? () => harness.stats.length >= arrivesAfter + iterations : iterations;
  for (let i = 0; !isThere(harness) && i < 200; i++) harness.loop.iterate();
  expect(isThere(harness)).toBe(true);
  return harness;
}

function endAndCheck(harness: LoopHarness, state: State, finishReason: number): void {
  const { others = [], options, tokens } = state;
  if (state.arrivesAfter === undefined || state.iterations !== 0) {
    expect(harness.kvCache.hasSequence(TARGET)).toBe(state.hasBlocks);
    expect(harness.responses.some(({ requestId, final }) => requestId === TARGET && final)).toBe(false);
  }
  harness.loop.iterate();
  // Within this one iteration: reported, and not a block is left.
  const result = harness.resultOf(TARGET);
  expect(result).toMatchObject({ finishReason, error: '' });
  expect(harness.kvCache.hasSequence(TARGET)).toBe(false);
  const alone = runAlone(makeRequest(TARGET, state.prompt, state.maxNewTokens));
  if (tokens >= 0) expect(result.tokens).toEqual(alone.tokens.slice(0, tokens));
  else expect(result.tokens).toEqual(alone.tokens.slice(0, result.tokens.length));
  expect(result.sequenceLength).toBe(state.prompt.length + result.tokens.length);
  const final = harness.responses.find(({ requestId, final }) => requestId === TARGET && final)!;
  const ran = Number(tensorOf(final.outputs, 'num_iterations')!.data[0]);
  expect(ran > 0).toBe(state.hasBlocks || tokens !== 0);
  harness.runToEnd();
  expect(harness.responses.filter(({ requestId, final }) => requestId === TARGET && final)).toHaveLength(1);
  for (const request of others) {
    const { modelType = 'InflightFusedBatching' } = options;
    expect(harness.resultOf(request.requestId)).toMatchObject({
      tokens: runAlone(request, { modelType }).tokens,
      error: '',
    });
  }
  expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  // The id is free again, and a request that takes it is not stopped by what was meant for another.
  harness.responses.length = 0;
  harness.run(makeRequest(TARGET, state.prompt, state.maxNewTokens));
  expect(harness.resultOf(TARGET).tokens).toEqual(alone.tokens);
}

describe.each(STATES)('a request $name', (state) => {
  it('ends within one iteration of a stop signal', () => {
    const harness = reach(state);
    harness.stops.add(TARGET);
    endAndCheck(harness, state, FINISH_CANCELLED);
  });

  it('ends in the iteration in which its time is up', () => {
    const harness = reach(state, { time_limit_ms: i32(LIMIT_MS) });
    const step = harness.executor.step.bind(harness.executor);
    harness.executor.step = (...batch) => {
      harness.nowMs += LIMIT_MS;
      step(...batch);
    };
    endAndCheck(harness, state, FINISH_TIMED_OUT);
  });
});

it('a time limit counts from the arrival, to the millisecond', () => {
  const harness = new LoopHarness();
  harness.nowMs = 5000;
  harness.waiting.push(makeRequest(TARGET, [1], 30, { time_limit_ms: i32(LIMIT_MS) }));
  harness.loop.iterate();
  harness.nowMs = 5000 + LIMIT_MS - 1;
  harness.loop.iterate();
  expect(harness.responses.every(({ final }) => !final)).toBe(true);
  harness.nowMs++;
  harness.loop.iterate();
  expect(harness.resultOf(TARGET)).toMatchObject({ finishReason: FINISH_TIMED_OUT });
  expect(harness.resultOf(TARGET).tokens).toHaveLength(3);
});

describe('stop signals', () => {
  it('for what is not there, has ended, or comes twice change nothing', () => {
    const harness = new LoopHarness();
    harness.stops.add(99n);
    harness.waiting.push(makeRequest(1n, [1], 6));
    harness.loop.iterate();
    harness.runToEnd();
    expect(harness.resultOf(1n).tokens).toHaveLength(6);
    harness.stops.add(1n).add(99n);
    expect(harness.loop.iterate()).toBe(false);
    expect(harness.responses.filter(({ final }) => final)).toHaveLength(1);
  });

  it('and time limits that come together with the natural end leave that as it is', () => {
    const harness = new LoopHarness();
    harness.waiting.push(makeRequest(1n, [1], 1, { time_limit_ms: i32(5) }));
    harness.stops.add(1n);
    harness.nowMs = 100;
    harness.runToEnd();
    expect(harness.resultOf(1n)).toMatchObject({ finishReason: 3 });
  });
});

describe('terminateReqId', () => {
  const terminate = makeRequest(42n, [1], 1);

  it('lets everything end that was there before, refuses the rest, and has no response of its own', () => {
    const harness = new LoopHarness({ terminateReqId: 42n });
    harness.waiting.push(makeRequest(1n, [1], 20), makeRequest(2n, [2], 10));
    harness.loop.iterate();
    harness.waiting.push(terminate, makeRequest(3n, [3], 1));
    harness.loop.iterate();
    expect(harness.loop.isDraining).toBe(true);
    harness.ignoresMax = true;
    harness.run(makeRequest(4n, [4], 1));
    for (const [id, length] of [
      [1n, 20],
      [2n, 10],
    ] as const) {
      expect(harness.resultOf(id)).toMatchObject({ error: '' });
      expect(harness.resultOf(id).tokens).toHaveLength(length);
    }
    for (const id of [3n, 4n]) expect(harness.resultOf(id).error).toMatch(/shutting down and takes no more/);
    expect(harness.responses.some(({ requestId }) => requestId === 42n)).toBe(false);
    expect(harness.kvCache.freeBlocks).toBe(harness.kvCache.numBlocks);
  });

  it('still lets what is active be stopped', () => {
    const harness = new LoopHarness({ terminateReqId: 42n });
    harness.waiting.push(makeRequest(1n, [1], 40), terminate);
    harness.loop.iterate();
    harness.stops.add(1n);
    harness.loop.iterate();
    expect(harness.resultOf(1n).finishReason).toBe(FINISH_CANCELLED);
    expect(harness.loop.iterate()).toBe(false);
  });

  it('is an id like any other where it is not given', () => {
    const harness = new LoopHarness().run(terminate);
    expect(harness.resultOf(42n).tokens).toHaveLength(1);
  });
});
