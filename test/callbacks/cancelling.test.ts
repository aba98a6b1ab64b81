import type { TokenPiece, TokenRequest, TokenStream } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { SteppedHost, TOKENS_PER_BLOCK } from '../support/stepped-host.js';

const hosts: SteppedHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close();
});

async function read(stream: TokenStream): Promise<TokenPiece[]> {
  const pieces: TokenPiece[] = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

const prompt = (length: number, first = 1) => Array.from({ length }, (_, i) => (first + i) % 50);

interface State {
  /** Place of the request, on its way through host and worker, when it is cancelled. */
  name: string;
  start: ConstructorParameters<typeof SteppedHost>;
  other: Pick<TokenRequest, 'promptTokens' | 'maxNewTokens'>;
  target: Pick<TokenRequest, 'promptTokens' | 'maxNewTokens'>;
  /** The iteration that is being computed when it is submitted (0: before the first), and when it is cancelled. */
  submitted: number;
  cancelled: number | ((stepped: SteppedHost) => boolean);
  /** It has ended at the end of that iteration, or of the next one. */
  endsAfter: 0 | 1;
  tokens: number;
}

/** A pool in which one longest sequence fits. */
const pool = (blocks: number) => ({
  kvCacheConfig: { maxTokens: blocks * TOKENS_PER_BLOCK },
  maxSeqLen: blocks * TOKENS_PER_BLOCK,
});
const long = { promptTokens: [9], maxNewTokens: 30 };

const STATES: State[] = [
  {
    name: 'on its way to the worker',
    start: [{}],
    other: long,
    target: { promptTokens: prompt(20), maxNewTokens: 9 },
    submitted: 1,
    cancelled: 1,
    endsAfter: 1, // the worker takes it, runs its context, and receives the cancellation
    tokens: 1,
  },
  {
    name: 'waiting for blocks',
    start: [pool(8), { schedulerPolicy: 'GUARANTEED_NO_EVICT' }],
    other: { promptTokens: prompt(8, 20), maxNewTokens: 40 },
    target: { promptTokens: prompt(16), maxNewTokens: 20 },
    submitted: 1,
    cancelled: 4,
    endsAfter: 0,
    tokens: 0,
  },
  {
    name: 'in its context',
    start: [{}],
    other: long,
    target: { promptTokens: prompt(20), maxNewTokens: 9 },
    submitted: 1,
    cancelled: 2,
    endsAfter: 0,
    tokens: 1,
  },
  {
    name: 'between two chunks',
    start: [{ enableChunkedContext: true, maxNumTokens: TOKENS_PER_BLOCK + 1 }],
    other: long,
    target: { promptTokens: prompt(40), maxNewTokens: 9 },
    submitted: 1,
    cancelled: 4,
    endsAfter: 0,
    tokens: 0,
  },
  {
    name: 'generating',
    start: [{}],
    other: long,
    target: { promptTokens: prompt(4), maxNewTokens: 20 },
    submitted: 1,
    cancelled: 5,
    endsAfter: 0,
    tokens: 4,
  },
  {
    name: 'paused',
    start: [pool(8)],
    other: { promptTokens: prompt(16, 20), maxNewTokens: 40 },
    target: { promptTokens: prompt(24), maxNewTokens: 30 },
    submitted: 1,
    cancelled: ({ stats }) => (stats.at(-1)?.pausedRequests ?? 0) > 0,
    endsAfter: 0,
    tokens: -1,
  },
  {
    name: 'complete in the hold of its batch',
    start: [{}, { modelType: 'V1' }],
    other: long,
    target: { promptTokens: prompt(4), maxNewTokens: 3 },
    submitted: 0,
    cancelled: 8,
    endsAfter: 0,
    tokens: 3,
  },
  {
    name: 'waiting for the batch of others',
    start: [{}, { modelType: 'V1' }],
    other: long,
    target: { promptTokens: prompt(4), maxNewTokens: 3 },
    submitted: 2,
    cancelled: 4,
    endsAfter: 0,
    tokens: 0,
  },
];

describe('a request that is cancelled', () => {
  it.each(STATES)('$name: has ended within an iteration, and has no block', async (state) => {
    const stepped = new SteppedHost(...state.start);
    hosts.push(stepped);
    const { host } = stepped;
    // Requests submitted before the engine is ready come to it together.
    if (state.submitted > 0) await host.ready;
    const other = read(host.submit({ ...state.other, temperature: 0 }));
    if (state.submitted > 0) await stepped.reach(state.submitted);
    const target = host.submit({ ...state.target, temperature: 0 });
    const pieces = read(target);
    if (state.submitted > 0) expect(host.queued).toBe(0);
    if (typeof state.cancelled === 'number') await stepped.reach(state.cancelled);
    else while (!state.cancelled(stepped)) await stepped.reach(stepped.stats.length + 2);
    expect(host.paused).toBe(state.name === 'paused' ? 1 : 0);
    host.cancel(target.requestId);
    await stepped.reach(stepped.stats.length + 1 + state.endsAfter);
    const { heldBlocks, usedBlocks, completedRequests } = await stepped.finish(stepped.stats.length + 1);
    expect(completedRequests).toBe(1);
    const otherTokens = state.other.promptTokens.length + stepped.stats.length - 1;
    expect(heldBlocks).toBe(Math.ceil(otherTokens / TOKENS_PER_BLOCK));
    expect(usedBlocks).toBeGreaterThanOrEqual(heldBlocks);
    const told = await pieces;
    expect(told.at(-1)!.finishReason).toBe('cancelled');
    const tokens = told.flatMap((piece) => [...piece.tokens]);
    const alone = runAlone(makeRequest(1n, [...state.target.promptTokens], state.target.maxNewTokens)).tokens;
    expect(tokens).toEqual(alone.slice(0, state.tokens < 0 ? tokens.length : state.tokens));
    expect([host.running, host.queued]).toEqual([1, 0]);
    stepped.open();
    const left = (await other).flatMap((piece) => [...piece.tokens]);
    expect(left).toEqual(
      runAlone(makeRequest(1n, [...state.other.promptTokens], state.other.maxNewTokens)).tokens,
    );
  });

  it('waiting in the host: has ended at once, and never reaches the engine', async () => {
    const stepped = new SteppedHost({ maxNumSequences: 1 });
    hosts.push(stepped);
    const { host } = stepped;
    const other = read(host.submit({ ...long, temperature: 0 }));
    await stepped.running(1);
    const target = host.submit({ promptTokens: [1], maxNewTokens: 9 });
    expect(host.queued).toBe(1);
    host.cancel(target.requestId);
    expect(host.queued).toBe(0);
    expect(await read(target)).toMatchObject([{ finishReason: 'cancelled' }]);
    stepped.open();
    await other;
    expect(stepped.stats.every(({ activeRequests }) => activeRequests === 1)).toBe(true);
  });
});
