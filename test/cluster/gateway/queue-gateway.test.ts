import { crc32 } from 'node:zlib';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { PieceSource } from '../../../callbacks/piece-source.js';
import { failure } from '../../../callbacks/request-failure.js';
import {
  HostClosedError,
  NoWorkerError,
  QueueFullError,
  RequestError,
  type TokenPiece,
  type TokenRequest,
} from '../../../callbacks/token-request.js';
import { QueueGateway, type QueueGatewayOptions } from '../../../cluster/gateway/queue-gateway.js';
import { type Beat, type ModelCard, modelKey } from '../../../cluster/nats/beat.js';
import type { GatewayPort } from '../../../cluster/nats/gateway-port.js';
import { NO_BLOCKS } from '../../../cluster/nats/kept-blocks.js';
import type { StopMessage, WorkItem } from '../../../cluster/nats/messages.js';
import type { PoolName } from '../../../cluster/nats/names.js';
import { RunWriter } from '../../../cluster/nats/token-runs.js';
import { PoolWeights } from '../../../cluster/routing/pool-weights.js';
import { type Answer, answerOf } from '../../../tools/support/queue/answers.js';

const MODEL: ModelCard = {
  ...{
    name: 'm',
    aliases: [],
    text: 't',
    fileName: 'm',
    files: [],
    info: {},
    adapterRoom: null,
    adapters: [],
  },
  engine: {
    ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 64, maxSeqLen: 64, maxSequences: 8 },
    ...{ maxNumTokens: 64, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 4 },
  },
};
const KEY = modelKey(MODEL);

const closing: QueueGateway[] = [];
afterEach(() => {
  for (const gateway of closing.splice(0)) gateway.close();
});

interface Offered {
  pool: PoolName;
  item: WorkItem;
  isWithdrawn: boolean;
}

/** A gateway whose stream and workers the test plays. */
function setUp(more: Partial<QueueGatewayOptions> = {}, limits = { maxQueueSize: 3, fairQueueing: false }) {
  const offers: Offered[] = [];
  const stops: [string, StopMessage][] = [];
  const dead = new Set<string>();
  const port: GatewayPort = {
    offer: async (pool, item) => {
      const offered: Offered = { pool, item, isWithdrawn: false };
      offers.push(offered);
      return {
        withdraw: () => {
          offered.isWithdrawn = true;
        },
      };
    },
    stop: (worker, message) => stops.push([worker, message]),
    probe: async (worker) => (dead.has(worker) ? 'nobody' : null),
  };
  const gateway = new QueueGateway({
    id: 'g',
    port,
    silence: { probeAfterMs: 1e6, lostAfterMs: 1e7, untoldAfterMs: 1e7 },
    workerWaitMs: 1e6,
    allowsDifferentBits: false,
    maxLocalPrefillLength: 8,
    onBeat: () => {},
    onLost: () => {},
    onWarning: () => {},
    ...more,
  });
  closing.push(gateway);
  gateway.open(KEY, limits);
  const beat = (worker: string, changes: Partial<Beat> = {}) =>
    gateway.onBeat({
      ...{ kind: 'beat', worker, pool: 'p', model: MODEL, places: 1, held: 0, maxBlocks: 9, usedBlocks: 0 },
      ...{ isLeaving: false, isGone: false, layout: 'same' },
      ...changes,
    });
  const prefiller = (worker: string, changes: Partial<Beat> = {}) =>
    beat(worker, { pool: 'prefill', isPrefill: true, ...changes });
  const ask = (length: number, changes: Partial<TokenRequest> = {}): Promise<Answer> => {
    const promptTokens = Int32Array.from({ length }, (_, i) => i);
    return answerOf(gateway.submit(KEY, { promptTokens, maxNewTokens: 4, ...changes })[0]!);
  };
  const last = () => offers.at(-1)!;
  /** Ends a worker's process; silence has to be short. */
  const kill = (worker: string) => {
    dead.add(worker);
    return vi.waitFor(() => expect(gateway.roster.find(worker)).toBeUndefined(), 120_000);
  };
  const hold = (worker: string, { id, attempt } = last().item) =>
    gateway.onHold({ kind: 'hold', worker, held: [[id, attempt]] });
  const prefilled = (worker: string, bytes = 20, numBlocks = 2, { id, attempt } = last().item) =>
    gateway.onFrames({
      ...{ kind: 'frames', worker, frames: [], failures: [] },
      prefilled: [{ id, attempt, cachedTokens: 3, bytes, numBlocks }],
    });
  const send = (
    worker: string,
    index: number,
    tokens: number[],
    isEnd = false,
    { id, attempt } = last().item,
  ) => {
    const piece = { tokens: Int32Array.from(tokens), finishReason: isEnd ? ('length' as const) : null };
    const frame = { id, attempt, sequence: 0, index, piece };
    gateway.onFrames({ kind: 'frames', worker, frames: [frame], failures: [] });
  };
  return { gateway, offers, stops, beat, prefiller, ask, last, hold, prefilled, send, kill };
}

/** Workers are asked soon. */
const SHORT = { probeAfterMs: 40, lostAfterMs: 1e7, untoldAfterMs: 1e7 };

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('a long prompt', () => {
  it('goes to a prefill worker, and with its blocks to one that answers', async () => {
    const { beat, prefiller, ask, offers, last, hold, prefilled, send, stops } = setUp();
    beat('d');
    prefiller('p');
    const asked = ask(9);
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'prefill' }, item: { attempt: 1, isPrefill: true } });
    hold('p');
    prefilled('p');
    await settle();
    const handOver = { worker: 'p', attempt: 1, layout: 'same', bytes: 20, numBlocks: 2 };
    expect(last()).toMatchObject({ pool: { fingerprint: 'p' }, item: { attempt: 2, handOver } });
    expect(last().item.isPrefill).toBeUndefined();
    hold('d');
    expect(stops).toEqual([]);
    send('d', 0, [1, 2]);
    // What was not fetched by now will not be.
    expect(stops).toEqual([['p', { kind: 'stop', id: last().item.id, attempt: 1, sequence: null }]]);
    send('d', 2, [3, 4], true);
    expect((await asked).tokens).toEqual([1, 2, 3, 4]);
    expect(offers).toHaveLength(2);
  });

  it.each<[string, Partial<TokenRequest>, number]>([
    ['that is not long', {}, 8],
    ['whose values are wanted', { returnContextLogProbs: true }, 9],
    ['with an adapter', { adapterName: 'a' }, 9],
  ])('%s is answered at once', async (_, request, length) => {
    const { beat, prefiller, ask, last } = setUp();
    beat('d', {
      model: { ...MODEL, adapters: [{ name: 'a', rank: 1, modules: [], bytes: 1, digest: 'd' }] },
    });
    prefiller('p');
    void ask(length, request);
    await settle();
    expect(last().pool.fingerprint).toBe('p');
    expect(last().item.isPrefill).toBeUndefined();
  });

  it('is answered at once where no prefill worker has room, has blocks that are of use, or is to stay', async () => {
    const full = setUp();
    full.beat('d', { places: 8 });
    full.prefiller('p', { places: 1, held: 1 });
    void full.ask(9);
    void full.ask(9);
    await settle();
    expect(full.offers.map(({ pool }) => pool.fingerprint)).toEqual(['prefill', 'p']);
    for (const change of [{ layout: 'other' }, { isLeaving: true }]) {
      const { beat, prefiller, ask, last } = setUp();
      beat('d');
      prefiller('p', change);
      void ask(9);
      await settle();
      expect(last().pool.fingerprint).toBe('p');
    }
  });

  it('is computed by the worker that answers once a prefill worker is lost with it', async () => {
    for (const end of ['lost', 'failed', 'forgotten', 'nothing'] as const) {
      const { gateway, beat, prefiller, ask, last, hold, prefilled } = setUp();
      beat('d');
      prefiller('p');
      void ask(9);
      await settle();
      hold('p');
      const { id, attempt } = last().item;
      if (end === 'lost') prefiller('p', { isGone: true });
      else if (end === 'failed') {
        const failures = [{ id, attempt, failure: failure('internal', 'broken') }];
        gateway.onFrames({ kind: 'frames', worker: 'p', frames: [], failures });
      } else if (end === 'forgotten') gateway.onHold({ kind: 'hold', worker: 'p', held: [] });
      else prefilled('p', 0, 0);
      await settle();
      expect(last()).toMatchObject({ pool: { fingerprint: 'p' }, item: { attempt: 2 } });
      expect(last().item.handOver).toBeUndefined();
    }
  });

  it('that kills its prefill worker has so many attempts less', async () => {
    const { beat, prefiller, ask, last, hold } = setUp();
    prefiller('p');
    beat('d0');
    const asked = ask(9);
    await settle();
    hold('p');
    const rules = expect(asked).rejects.toThrow('The request was begun 3 times');
    for (const [i, worker] of ['p', 'd0', 'd1'].entries()) {
      if (i > 0) {
        beat(worker);
        await settle();
        hold(worker);
      }
      const { id, attempt } = last().item;
      const failures = [{ id, attempt, failure: failure('internal', 'broken') }];
      closing.at(-1)!.onFrames({ kind: 'frames', worker, frames: [], failures });
      await settle();
    }
    await rules;
  });

  it('goes to no prefill worker once somebody answers it', async () => {
    const { beat, prefiller, ask, last, hold, send } = setUp();
    beat('d');
    prefiller('p', { held: 9 });
    // The first one lies in the stream for the prefill worker, which has no room for a second one.
    void ask(9);
    const asked = ask(9);
    await settle();
    expect(last().item.isPrefill).toBeUndefined();
    const { item } = last();
    send('d', 0, [1, 2], false, item);
    prefiller('p', { places: 9 });
    beat('d', { isGone: true });
    beat('e');
    await settle();
    expect(last()).toMatchObject({
      pool: { fingerprint: 'p' },
      item: { id: item.id, attempt: 2, known: [2] },
    });
    expect(last().item.isPrefill).toBeUndefined();
    hold('e');
    send('e', 2, [3], true);
    expect((await asked).tokens).toEqual([1, 2, 3]);
  });

  it('is handed over again to the next worker where the first one dies before a token', async () => {
    const { beat, prefiller, ask, last, hold, prefilled, send } = setUp();
    beat('d');
    prefiller('p');
    const asked = ask(9);
    await settle();
    prefilled('p');
    await settle();
    hold('d');
    beat('e');
    beat('d', { isGone: true });
    await settle();
    expect(last().item).toMatchObject({ attempt: 3, handOver: { worker: 'p', attempt: 1 } });
    send('e', 0, [1, 2, 3, 4], true);
    expect((await asked).tokens).toEqual([1, 2, 3, 4]);
  });

  it('counts as computed, though its worker found it in its cache', async () => {
    const { gateway, beat, prefiller, last, prefilled } = setUp();
    beat('d');
    prefiller('p');
    const promptTokens = Int32Array.from({ length: 9 });
    const [stream] = gateway.submit(KEY, { promptTokens, maxNewTokens: 1 });
    await settle();
    prefilled('p');
    await settle();
    const { id, attempt } = last().item;
    const piece = { tokens: Int32Array.of(1), finishReason: 'length' as const, cachedTokens: 8 };
    const frame = { id, attempt, sequence: 0, index: 0, piece };
    gateway.onFrames({ kind: 'frames', worker: 'd', frames: [frame], failures: [] });
    const cached: unknown[] = [];
    for await (const { cachedTokens } of stream!) cached.push(cachedTokens);
    expect(cached).toEqual([3]);
  });

  it('leaves no blocks behind where its client leaves', async () => {
    const { gateway, beat, prefiller, ask, last, prefilled, stops } = setUp();
    beat('d');
    prefiller('p');
    const leave = new AbortController();
    const asked = ask(9, { signal: leave.signal });
    await settle();
    prefilled('p');
    await settle();
    const { id } = last().item;
    leave.abort();
    expect((await asked).finishReason).toBe('cancelled');
    expect(stops).toContainEqual(['p', { kind: 'stop', id, attempt: 1, sequence: null }]);
    expect(gateway.size).toBe(0);
  });

  it('is computed by whoever answers where blocks do not fit, which is told once of each pool', async () => {
    const warnings: string[] = [];
    const { gateway, beat, prefiller, ask, last } = setUp({ onWarning: (message) => warnings.push(message) });
    const other = { ...MODEL, engine: { ...MODEL.engine, tokensPerBlock: 8 } };
    prefiller('p', { layout: 'other', pool: 'p8', model: other });
    expect(warnings).toEqual([]);
    beat('d');
    prefiller('q', { layout: 'other', pool: 'p8', model: other });
    beat('e');
    prefiller('r', { layout: 'third', pool: 'p4', model: { ...MODEL, info: { kvDtype: 'int8' } } });
    expect(warnings).toEqual([
      'The prefill workers of m in the pool p8 are of no use: no worker that answers can take their blocks, which have 8 tokens where theirs have 4 (--tokens-per-block). The workers that answer compute all prompts.',
      'The prefill workers of m in the pool p4 are of no use: no worker that answers can take their blocks, since they differ in the type of the KV cache. The workers that answer compute all prompts.',
    ]);
    expect(gateway.numUnusedPrefillersOf(KEY)).toBe(3);
    void ask(9);
    await settle();
    expect(last().pool.fingerprint).toBe('p');
    beat('f', { pool: 'answers8', model: other, layout: 'other' });
    expect(gateway.numUnusedPrefillersOf(KEY)).toBe(1);
  });

  it('is told as stale where nobody waits for it any more', async () => {
    const { beat, prefiller, ask, last, prefilled, stops, offers } = setUp();
    beat('d');
    prefiller('p');
    void ask(9);
    await settle();
    prefilled('q', 20, 2, { ...last().item, attempt: 7 });
    expect(stops).toEqual([['q', { kind: 'stop', id: last().item.id, attempt: 7, sequence: null }]]);
    await settle();
    expect(offers).toHaveLength(1);
  });

  it('makes no model of a prefill worker alone', async () => {
    const { gateway, prefiller, ask, offers } = setUp();
    prefiller('p');
    void ask(9).catch(() => {});
    await settle();
    expect(offers).toHaveLength(0);
    expect(gateway.numWorkersOf(KEY)).toBe(0);
  });
});

describe('engines of one model', () => {
  const card = (fingerprint: string): ModelCard => ({ ...MODEL, info: { fingerprint } });
  const LARGE = { maxQueueSize: 1000, fairQueueing: false };
  /** Workers of two engines, each with `places` places. */
  function withTwo(weights?: PoolWeights, places = 100) {
    const lab = setUp(weights === undefined ? {} : { weights }, LARGE);
    const tell = (changes: Partial<Beat> = {}) => {
      lab.beat('a', { pool: 'pa', model: card('fp_a'), places, ...changes });
      lab.beat('b', { pool: 'pb', model: card('fp_b'), places, ...changes });
    };
    tell();
    const pools = () => lab.offers.map(({ pool }) => pool.fingerprint);
    const count = (pool: string) => pools().filter((one) => one === pool).length;
    return { ...lab, tell, pools, count };
  }

  it('share new requests by weights, exactly but for less than one request for each', async () => {
    const weights = new PoolWeights(
      new Map([
        ['fp_a', 95],
        ['fp_b', 5],
      ]),
    );
    const { gateway, ask, count, tell } = withTwo(weights);
    for (let asked = 1; asked <= 100; asked++) {
      void ask(3).catch(() => {});
      await settle();
      expect(Math.abs(count('pb') - 0.05 * asked)).toBeLessThan(1);
      tell();
    }
    expect([count('pa'), count('pb')]).toEqual([95, 5]);
    const shares = { fp_a: { requests: 95, weight: 95 }, fp_b: { requests: 5, weight: 5 } };
    expect(Object.fromEntries(gateway.sharesOf(KEY))).toEqual(shares);
    // Promoted, while it runs.
    weights.replace(new Map([['fp_b', 1]]));
    for (let asked = 0; asked < 10; asked++) void ask(3).catch(() => {});
    await settle();
    expect([count('pa'), count('pb')]).toEqual([95, 15]);
  });

  it('keep their share where one of them is full, and the other one waits for nobody', async () => {
    const half = new Map([
      ['fp_a', 1],
      ['fp_b', 1],
    ]);
    const weights = new PoolWeights(half);
    const { gateway, beat, ask, count } = withTwo(weights);
    beat('b', { pool: 'pb', model: card('fp_b'), places: 1, held: 1 });
    for (let asked = 0; asked < 20; asked++) void ask(3).catch(() => {});
    await settle();
    // One lies ahead of the full one.
    expect([count('pa'), count('pb')]).toEqual([10, 1]);
    expect(gateway.countsOf(KEY).waiting).toBe(20);
    // Withdrawn: those that wait for it go to the other one.
    weights.replace(new Map([['fp_a', 1]]));
    void ask(3).catch(() => {});
    await settle();
    expect([count('pa'), count('pb')]).toEqual([20, 1]);
  });

  it('may be named by a request, whatever their weight, and by a wrong name not at all', async () => {
    const weights = new PoolWeights(new Map([['fp_a', 1]]));
    const { beat, ask, offers, pools, send, last } = withTwo(weights);
    void ask(3).catch(() => {});
    const pinned = ask(3, { engineFingerprint: 'fp_b' });
    await settle();
    expect(pools().sort()).toEqual(['pa', 'pb']);
    expect(last().item.request).not.toHaveProperty('engineFingerprint');
    await expect(ask(3, { engineFingerprint: 'fp_c' })).rejects.toMatchObject({
      kind: 'invalid',
      message: 'There is no engine fp_c of the model m: its workers have fp_a, fp_b.',
    });
    // It does not go elsewhere, and continues where it has begun.
    const { item } = offers.find(({ pool }) => pool.fingerprint === 'pb')!;
    send('b', 0, [5], false, item);
    beat('b2', { pool: 'pb', model: card('fp_b') });
    beat('b', { pool: 'pb', isGone: true });
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'pb' }, item: { attempt: 2, known: [1] } });
    send('b2', 1, [6], true);
    expect((await pinned).tokens).toEqual([5, 6]);
  });

  it('that are named and were there are waited for', async () => {
    const { beat, ask, last, send } = withTwo();
    beat('b', { pool: 'pb', isGone: true });
    const pinned = ask(3, { engineFingerprint: 'fp_b' });
    await settle();
    beat('b2', { pool: 'pb', model: card('fp_b') });
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'pb' } });
    send('b2', 0, [5, 6, 7], true);
    expect((await pinned).tokens).toEqual([5, 6, 7]);
  });

  it('that are named and lost are waited for, though others are there', async () => {
    const { gateway, beat, offers } = withTwo();
    const [stream] = gateway.submit(KEY, { promptTokens: [1], maxNewTokens: 4, engineFingerprint: 'fp_b' });
    const asked = answerOf(stream!);
    await settle();
    beat('b', { pool: 'pb', isGone: true });
    await settle();
    expect(offers).toHaveLength(1);
    beat('b2', { pool: 'pb', model: card('fp_b') });
    await settle();
    gateway.close();
    expect((await asked).finishReason).toBe('cancelled');
  });
});

describe('beats without a card', () => {
  it('are of a pool that one worker of it is asked for, once at a time', async () => {
    const asked: string[] = [];
    const answers: ((beat: Beat | 'nobody' | null) => void)[] = [];
    const port = {
      offer: async () => ({ withdraw: () => {} }),
      stop: () => {},
      probe: (worker: string) => {
        asked.push(worker);
        return new Promise<Beat | 'nobody' | null>((resolve) => answers.push(resolve));
      },
    };
    const { gateway } = setUp({ port });
    const bare = (worker: string, pool = 'p'): Beat => ({
      ...{ kind: 'beat', worker, pool, places: 1, held: 0, maxBlocks: 9, usedBlocks: 0 },
      ...{ isLeaving: false, isGone: false },
    });
    for (const worker of ['a', 'b', 'c']) gateway.onBeat(bare(worker));
    gateway.onBeat(bare('d', 'q'));
    expect(asked).toEqual(['a', 'd']);
    expect(gateway.numWorkersOf(KEY)).toBe(0);
    // No answer comes: the next worker that sends a beat is asked.
    answers[0]!(null);
    await settle();
    gateway.onBeat(bare('b'));
    expect(asked).toEqual(['a', 'd', 'b']);
    answers[2]!({ ...bare('b'), model: MODEL });
    await settle();
    expect(gateway.numWorkersOf(KEY)).toBe(1);
    for (const worker of ['a', 'b', 'c']) gateway.onBeat(bare(worker));
    expect(gateway.numWorkersOf(KEY)).toBe(3);
    expect(asked).toHaveLength(3);
  });
});

describe('a request', () => {
  it('waits in the gateway, of which only so many do', async () => {
    const { gateway, beat, ask, offers } = setUp();
    const waiting = [ask(1), ask(1), ask(1)];
    expect(() => gateway.checkRoom(KEY, '')).toThrow(QueueFullError);
    expect(() => ask(1)).toThrow(QueueFullError);
    await settle();
    expect(offers).toHaveLength(0);
    beat('d');
    await settle();
    // One that it has room for, and one ahead.
    expect(offers).toHaveLength(2);
    gateway.close();
    expect((await Promise.all(waiting)).map(({ finishReason }) => finishReason)).toEqual(
      Array(3).fill('cancelled'),
    );
    expect(() => ask(1)).toThrow(HostClosedError);
  });

  it('goes on behind its tokens with an equal worker only, or with any if bits may differ', async () => {
    for (const allowsDifferentBits of [false, true]) {
      const { beat, ask, last, send, offers } = setUp({ allowsDifferentBits });
      beat('d');
      const asked = ask(3);
      await settle();
      send('d', 0, [5, 6]);
      beat('other', { pool: 'q' });
      beat('d', { isGone: true });
      await settle();
      if (!allowsDifferentBits) {
        expect(offers).toHaveLength(1);
        beat('equal');
        await settle();
      }
      const pool = allowsDifferentBits ? 'q' : 'p';
      expect(last()).toMatchObject({ pool: { fingerprint: pool }, item: { attempt: 2, known: [2] } });
      expect(last().item.request.knownOutputIds).toEqual([Int32Array.of(5, 6)]);
      send(allowsDifferentBits ? 'other' : 'equal', 2, [7], true);
      expect((await asked).tokens).toEqual([5, 6, 7]);
    }
  });

  /** A client that has nothing before the end, and so begins again with all that it has got withdrawn. */
  function whole(stream: PieceSource<TokenPiece>) {
    const got = {
      tokens: [] as number[],
      restarts: 0,
      finish: null as string | null,
      error: null as unknown,
    };
    stream.listen({
      onPiece: ({ tokens, finishReason }) => {
        got.tokens.push(...tokens);
        got.finish = finishReason;
      },
      onRestart: () => {
        got.tokens = [];
        got.restarts += 1;
      },
      onError: (error) => {
        got.error = error;
      },
    });
    return got;
  }

  it('whose client has had nothing begins again in another pool, once no equal worker is left', async () => {
    const { gateway, beat, offers, last, send, hold } = setUp();
    beat('d');
    const request = { promptTokens: [1, 2, 3], maxNewTokens: 4, seed: 7n };
    const [stream] = gateway.submit(KEY, request);
    const got = whole(stream!);
    await settle();
    expect(stream!.isWaiting).toBe(true);
    send('d', 0, [5, 6]);
    expect(stream!.isWaiting).toBe(false);
    const before = last().item;
    // An equal worker continues with the tokens.
    beat('e');
    beat('other', { pool: 'q', model: { ...MODEL, info: { fingerprint: 'fp_q' } } });
    beat('d', { isGone: true });
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'p' }, item: { attempt: 2, known: [2] } });
    send('e', 2, [7]);
    expect(got).toMatchObject({ tokens: [5, 6, 7], restarts: 0 });
    beat('e', { isGone: true });
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'q' }, item: { attempt: 3, known: [0] } });
    expect(last().item.request).toEqual(before.request);
    expect(got).toMatchObject({ tokens: [], restarts: 1 });
    hold('other');
    // What the lost ones send is of another answer.
    send('d', 0, [5, 6, 7], true, before);
    send('other', 0, [8]);
    send('other', 1, [9], true);
    expect(got).toEqual({ tokens: [8, 9], restarts: 1, finish: 'length', error: null });
    expect(stream!.engines).toEqual(['fp_q']);
    expect(offers).toHaveLength(3);
    expect(gateway.size).toBe(0);
  });

  it('with several sequences begins those again that have not ended', async () => {
    const { gateway, beat, last } = setUp();
    beat('d', { model: { ...MODEL, info: { fingerprint: 'fp_p' } } });
    const request = { promptTokens: [1, 2, 3], maxNewTokens: 2, numSequences: 2 };
    const streams = gateway.submit(KEY, request);
    const got = streams.map(whole);
    await settle();
    const tell = (worker: string, sequence: number, tokens: number[], isEnd: boolean) => {
      const { id, attempt } = last().item;
      const piece = { tokens: Int32Array.from(tokens), finishReason: isEnd ? ('length' as const) : null };
      const frames = [{ id, attempt, sequence, index: 0, piece }];
      gateway.onFrames({ kind: 'frames', worker, frames, failures: [] });
    };
    tell('d', 0, [5, 6], true);
    tell('d', 1, [7], false);
    beat('other', { pool: 'q', model: { ...MODEL, info: { fingerprint: 'fp_q' } } });
    beat('d', { isGone: true });
    await settle();
    expect(last()).toMatchObject({ pool: { fingerprint: 'q' }, item: { known: [2, 0], ended: [0] } });
    tell('other', 1, [8, 9], true);
    expect(got.map(({ tokens, restarts }) => [tokens, restarts])).toEqual([
      [[5, 6], 0],
      [[8, 9], 1],
    ]);
    // What is of two engines says so.
    expect(streams.map(({ engines }) => engines)).toEqual([['fp_p'], ['fp_q']]);
  });

  it('of which tokens were passed on waits for an equal worker, and fails without one', async () => {
    const silence = { ...SHORT, lostAfterMs: 1e7 };
    const { gateway, beat, ask, offers, send, last } = setUp({ silence, workerWaitMs: 30 });
    beat('d');
    const asked = ask(3);
    const [plain] = gateway.submit(KEY, { promptTokens: [1, 2, 3], maxNewTokens: 4 });
    const got = whole(plain!);
    await settle();
    const [streamed, kept] = offers.map(({ item }) => item);
    send('d', 0, [5], false, streamed);
    send('d', 0, [6], false, kept);
    const fails = expect(asked).rejects.toMatchObject({ kind: 'internal' });
    beat('d', { isGone: true });
    await fails;
    // The other one can be asked again: the only fault was that no worker is there.
    await vi.waitFor(() => expect(got.error).toBeInstanceOf(NoWorkerError), 120_000);
    expect(last().item.attempt).toBe(1);
  });

  it('names the engines that answer it, in order, and none that gave it no token', async () => {
    const { gateway, beat, last, send, hold } = setUp({ allowsDifferentBits: true });
    const card = (fingerprint: string): ModelCard => ({ ...MODEL, info: { fingerprint } });
    beat('d', { model: card('fp_d') });
    const [stream] = gateway.submit(KEY, { promptTokens: [1, 2, 3], maxNewTokens: 4 });
    expect(stream!.engines).toBeUndefined();
    const asked = answerOf(stream!);
    await settle();
    hold('d');
    expect(stream!.engines).toEqual(['fp_d']);
    beat('e', { pool: 'q', model: card('fp_e') });
    beat('d', { isGone: true });
    await settle();
    hold('e');
    expect(stream!.engines).toEqual(['fp_e']);
    send('e', 0, [5, 6]);
    beat('f', { pool: 'r', model: card('fp_f') });
    beat('e', { isGone: true });
    await settle();
    send('f', 2, [7], true, last().item);
    expect((await asked).tokens).toEqual([5, 6, 7]);
    expect(stream!.engines).toEqual(['fp_e', 'fp_f']);
  });

  it('with an adapter names the engine and the adapter that the worker has', async () => {
    const { gateway, beat, hold } = setUp();
    const adapterOf = (digest: string) => ({ name: 'a', rank: 1, modules: [], bytes: 1, digest });
    const engines = [];
    for (const [worker, digest] of [
      ['d', 'one'],
      ['e', 'two'],
    ] as const) {
      const model = { ...MODEL, info: { fingerprint: 'fp' }, adapters: [adapterOf(digest)] };
      beat(worker, { pool: digest, model });
      const [stream] = gateway.submit(KEY, { promptTokens: [1], maxNewTokens: 4, adapterName: 'a' });
      await settle();
      hold(worker);
      engines.push(stream!.engines);
      beat(worker, { isGone: true });
    }
    expect(engines[0]).toEqual([expect.stringMatching(/^fp_/)]);
    expect(engines[1]).not.toEqual(engines[0]);
  });

  it('ends in time, and takes its offer back', async () => {
    const { beat, ask, last } = setUp();
    beat('d');
    const asked = ask(3, { timeLimitMs: 5 });
    await settle();
    expect((await asked).finishReason).toBe('timeout');
    expect(last().isWithdrawn).toBe(true);
  });

  it('goes on elsewhere if its worker is there, and tells no more that it has it', async () => {
    const silence = { probeAfterMs: 1e6, lostAfterMs: 1e7, untoldAfterMs: 30 };
    const { gateway, beat, ask, offers, last, hold, send } = setUp({ silence });
    beat('a');
    const asked = ask(3);
    await settle();
    hold('a');
    send('a', 0, [5]);
    // Its connection was away, and it has given up what it had: it beats, and has nothing to report.
    gateway.onDisconnect();
    gateway.onReconnect();
    await expect
      .poll(() => {
        beat('a');
        return offers.length;
      })
      .toBe(2);
    expect(last().item).toMatchObject({ attempt: 2, known: [1] });
    hold('a');
    send('a', 1, [6], true);
    expect((await asked).tokens).toEqual([5, 6]);
  });

  it('may be left in the middle of a message, of which the rest counts', async () => {
    const { gateway, beat, offers, stops } = setUp({}, { maxQueueSize: 5, fairQueueing: false });
    beat('a', { places: 3 });
    const streams = [0, 1, 2].map(
      () => gateway.submit(KEY, { promptTokens: Int32Array.of(1), maxNewTokens: 4 })[0]!,
    );
    const got: number[][] = [[], [], []];
    for (const [i, stream] of streams.entries()) {
      stream.listen({
        onPiece: ({ tokens }) => {
          got[i]!.push(...tokens);
          // As a text that is found to end the answer.
          if (i === 0) stream.leave();
        },
        onError: (error) => expect.fail(String(error)),
      });
    }
    await settle();
    const frames = offers.map(({ item: { id, attempt } }) => ({
      ...{ id, attempt, sequence: 0, index: 0 },
      piece: { tokens: Int32Array.of(7), finishReason: null },
    }));
    gateway.onFrames({ kind: 'frames', worker: 'a', frames, failures: [] });
    expect(got).toEqual([[7], [7], [7]]);
    expect(gateway.size).toBe(2);
    expect(stops.map(([, { id }]) => id)).toEqual([offers[0]!.item.id]);
    expect(offers).toHaveLength(3);
  });

  it('ends alone if what its worker sent cannot be taken: the rest of the message counts', async () => {
    const warnings: string[] = [];
    const limits = { maxQueueSize: 5, fairQueueing: false };
    const { gateway, beat, ask, offers } = setUp({ onWarning: (message) => warnings.push(message) }, limits);
    beat('a', { places: 3 });
    const [odd, other, failed] = [ask(3), ask(3), ask(3)];
    await settle();
    const [first, second, third] = offers.map(({ item: { id, attempt } }) => ({ id, attempt }));
    const piece = { tokens: Int32Array.of(7), finishReason: null };
    gateway.onFrames({
      ...{ kind: 'frames', worker: 'a' },
      frames: [{ ...first!, sequence: 0, index: 0, piece }],
      failures: [],
    });
    const both = { tokens: Int32Array.of(7, 8), finishReason: 'length' as const };
    const frame = { sequence: 0, index: 0, piece: both };
    gateway.onFrames({
      ...{ kind: 'frames', worker: 'a' },
      frames: [
        { ...first!, ...frame, piece: { ...both, logProbs: 'x' as never } },
        { ...second!, ...frame },
      ],
      failures: [{ ...third!, failure: failure('invalid', 'It is wrong.') }],
    });
    await expect(odd).rejects.toThrow('What worker a sent for the request cannot be taken');
    expect((await other).tokens).toEqual([7, 8]);
    await expect(failed).rejects.toThrow('It is wrong.');
    expect(warnings).toEqual([expect.stringContaining(`Request ${first!.id}.`)]);
    expect(gateway.size).toBe(0);
  });

  it('moves from a worker that is to end as soon as an equal one is there', async () => {
    const { beat, ask, last, hold, stops, send } = setUp();
    beat('d');
    const asked = ask(3);
    await settle();
    hold('d');
    beat('d', { isLeaving: true });
    await settle();
    expect(last().item.attempt).toBe(1);
    beat('e');
    await settle();
    expect(last().item.attempt).toBe(2);
    expect(stops).toMatchObject([['d', { attempt: 1, sequence: null }]]);
    send('e', 0, [1], true);
    expect((await asked).tokens).toEqual([1]);
  });
});

describe('tokens that come as numbers', () => {
  const runsOf = (
    ...runs: [number: number, attempt: number, sequence: number, index: number, tokens: number[]][]
  ) => {
    const writer = new RunWriter();
    for (const [number, attempt, sequence, index, tokens] of runs)
      writer.add(number, attempt, sequence, index, Int32Array.from(tokens));
    return { kind: 'frames' as const, worker: 'd', runs: writer.words, frames: [], failures: [] };
  };

  it('are taken once, in order, before the frames of their message', async () => {
    const { gateway, beat, ask, last, stops } = setUp();
    beat('d');
    const asked = ask(3);
    await settle();
    const { id, number, attempt } = last().item;
    gateway.onFrames(runsOf([number!, attempt, 0, 0, [1]]));
    gateway.onFrames(runsOf([number!, attempt, 0, 0, [1, 2]], [number!, attempt, 0, 1, [2]]));
    const piece = { tokens: Int32Array.of(4), finishReason: 'length' as const };
    const frames = [{ id, attempt, sequence: 0, index: 3, piece }];
    gateway.onFrames({ ...runsOf([number!, attempt, 0, 2, [3]]), frames });
    expect((await asked).tokens).toEqual([1, 2, 3, 4]);
    expect(stops).toEqual([]);
    expect(gateway.size).toBe(0);
  });

  it('begin a new attempt where some are missing, and end a request whose tokens were others', async () => {
    const { gateway, beat, ask, last, offers } = setUp();
    beat('d');
    const asked = ask(3);
    await settle();
    const { number } = last().item;
    gateway.onFrames(runsOf([number!, 1, 0, 0, [1]], [number!, 1, 0, 2, [3]]));
    await settle();
    expect(offers).toHaveLength(2);
    expect(last().item).toMatchObject({ attempt: 2, known: [1] });
    const failed = expect(asked).rejects.toThrow('Two workers gave other tokens');
    gateway.onFrames(runsOf([number!, 2, 0, 0, [8, 9]]));
    await failed;
  });

  it('are of no use for a request that has ended, or another attempt: their worker may stop', async () => {
    const { gateway, beat, ask, last, stops } = setUp();
    beat('d');
    void ask(3);
    await settle();
    const { id, number } = last().item;
    gateway.onFrames(runsOf([number! + 5, 1, 0, 0, [1]], [number!, 7, 0, 0, [1]], [number!, 1, 3, 0, [1]]));
    expect(stops.map(([, { id: of, attempt }]) => [of, attempt])).toEqual([
      [`g-${number! + 5}`, 1],
      [id, 1],
    ]);
  });
});

describe('a worker that is ill', () => {
  it('costs the request an attempt where its tokens lack the values that were asked for, and others nothing', async () => {
    const { gateway, beat, ask, offers, stops } = setUp();
    beat('d', { places: 4 });
    const failed = expect(ask(3, { returnLogProbs: true })).rejects.toThrow(
      'The request was begun 3 times, and each time its worker sent tokens without the values',
    );
    const asked = ask(3);
    await settle();
    const [strange, other] = offers.map(({ item }) => item);
    const writer = new RunWriter();
    writer.add(strange!.number!, 1, 0, 0, Int32Array.of(1));
    writer.add(other!.number!, 1, 0, 0, Int32Array.of(5));
    const message = { kind: 'frames' as const, worker: 'd', frames: [], failures: [] };
    gateway.onFrames({ ...message, runs: writer.words });
    expect(stops).toEqual([['d', { kind: 'stop', id: strange!.id, attempt: 1, sequence: null }]]);
    for (const attempt of [2, 3]) {
      await settle();
      const piece = { tokens: Int32Array.of(1), finishReason: null };
      gateway.onFrames({ ...message, frames: [{ id: strange!.id, attempt, sequence: 0, index: 0, piece }] });
    }
    await failed;
    const piece = { tokens: Int32Array.of(6), finishReason: 'stop' as const };
    gateway.onFrames({ ...message, frames: [{ id: other!.id, attempt: 1, sequence: 0, index: 1, piece }] });
    expect((await asked).tokens).toEqual([5, 6]);
  });
});

describe('a lost connection to the NATS server', () => {
  it('is told once, and so is its return', () => {
    const warnings: string[] = [];
    const { gateway } = setUp({ onWarning: (message) => warnings.push(message) });
    expect(gateway.isConnected).toBe(true);
    gateway.onDisconnect();
    gateway.onDisconnect();
    expect(gateway.isConnected).toBe(false);
    expect(warnings).toEqual([expect.stringContaining('cannot be reached')]);
    gateway.onReconnect();
    expect(gateway.isConnected).toBe(true);
    expect(warnings).toEqual([expect.anything(), 'The NATS server is there again.']);
    gateway.close();
    gateway.onDisconnect();
    expect(warnings).toHaveLength(2);
  });

  it('ends requests after the wait for a worker, those that wait and those that a worker has', async () => {
    const { gateway, beat, ask, hold, last, send } = setUp({ silence: SHORT, workerWaitMs: 60 });
    beat('a', { places: 2 });
    const leased = ask(3);
    await settle();
    hold('a');
    send('a', 0, [1]);
    const { item } = last();
    gateway.onDisconnect();
    const waiting = ask(3);
    for (const asked of [leased, waiting]) await expect(asked).rejects.toThrow(NoWorkerError);
    await expect(waiting).rejects.toThrow(/^The NATS server, .* cannot be reached at present/);
    expect(gateway.size).toBe(0);
    gateway.onReconnect();
    // No request waits for it any more.
    expect(hold('a', item).stale).toEqual([[item.id, item.attempt]]);
  });
});

describe('a request that may have killed its workers', () => {
  /** All requests that lie in the stream, or are with a worker, in their present attempts. */
  const idsOf = (offers: Offered[]) => offers.map(({ item: { id, attempt } }) => `${id}/${attempt}`);

  it('is tried when no other suspect is, until its first token', async () => {
    const limits = { maxQueueSize: 9, fairQueueing: false };
    const { beat, ask, offers, gateway, send, kill } = setUp({ silence: SHORT }, limits);
    beat('w0', { places: 8 });
    const asked = [ask(3), ask(4), ask(5)];
    const ended = Promise.allSettled(asked);
    await settle();
    for (const worker of ['w0', 'w1']) {
      beat(worker, { places: 8 });
      await settle();
      const now = offers.slice(-3).map(({ item }) => item);
      gateway.onHold({ kind: 'hold', worker, held: now.map(({ id, attempt }) => [id, attempt]) });
      beat('w2', { places: 8 });
      await kill(worker);
      await settle();
    }
    // Two losses, all together: from now on one at a time.
    expect(idsOf(offers.slice(6))).toEqual(['g-1/3']);
    // New ones are not held up.
    const fresh = ask(6);
    await settle();
    expect(idsOf(offers.slice(6))).toEqual(['g-1/3', 'g-4/1']);
    // The first one is what kills.
    gateway.onHold({ kind: 'hold', worker: 'w2', held: [['g-1', 3]] });
    beat('w3', { places: 8 });
    await kill('w2');
    await expect(asked[0]).rejects.toThrow(
      'The request was begun 3 times, and each time its worker was lost',
    );
    await settle();
    const tried = offers.findLast(({ item }) => item.id === 'g-2')!.item;
    expect(tried.attempt).toBe(3);
    expect(offers.findLast(({ item }) => item.id === 'g-3')!.item.attempt).toBe(2);
    send('w3', 0, [1], false, tried);
    await settle();
    const next = offers.findLast(({ item }) => item.id === 'g-3')!.item;
    expect(next.attempt).toBe(3);
    send('w3', 0, [2], true, next);
    send('w3', 1, [3], true, tried);
    send('w3', 0, [4], true, offers.findLast(({ item }) => item.id === 'g-4')!.item);
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect((await fresh).tokens).toEqual([4]);
  });

  it('is told from one that never got on', async () => {
    const rules = { maxFruitlessAttempts: 9, maxLostAttempts: 9, maxAttempts: 3 };
    const { beat, ask, hold, gateway } = setUp({ rules });
    beat('a');
    const asked = ask(3);
    const rejected = expect(asked).rejects.toThrow(
      /^The request was begun 3 times and did not end: none of its workers was lost, /,
    );
    for (let i = 0; i < 3; i++) {
      await settle();
      hold('a');
      gateway.onHold({ kind: 'hold', worker: 'a', held: [] });
    }
    await rejected;
  });

  it('is told how many workers it lost', async () => {
    const rules = { maxFruitlessAttempts: 9, maxLostAttempts: 2, maxAttempts: 9 };
    const { beat, ask, hold, kill } = setUp({ rules, silence: SHORT });
    const asked = ask(3);
    const rejected = expect(asked).rejects.toThrow(
      'The request was begun 2 times, and its worker was lost, or failed, in 2 of them, the last time: its worker was lost;',
    );
    for (const worker of ['a', 'b']) {
      beat(worker);
      await settle();
      hold(worker);
      await kill(worker);
    }
    await rejected;
  });
});

describe('workers of one model that differ in their limits', () => {
  const small: ModelCard = { ...MODEL, engine: { ...MODEL.engine, maxSequences: 1, maxSeqLen: 16 } };

  it.each([
    [false, false, 'q'],
    [true, true, 'q'],
    [true, false, null],
  ])(
    'take over a request (begun: %s) where bits may differ (%s): %s',
    async (isBegun, allowsDifferentBits, pool) => {
      const { beat, ask, hold, send, last, kill, offers } = setUp({ silence: SHORT, allowsDifferentBits });
      beat('a');
      void ask(3).catch(() => {});
      await settle();
      hold('a');
      if (isBegun) send('a', 0, [1]);
      beat('b', { pool: 'q', model: small });
      await kill('a');
      await settle();
      expect(offers).toHaveLength(pool === null ? 1 : 2);
      expect(last().pool.fingerprint).toBe(pool ?? 'p');
    },
  );

  it('get what fits them', async () => {
    const { beat, ask, offers } = setUp();
    beat('b', { pool: 'q', model: small, places: 9 });
    beat('a');
    void ask(3);
    void ask(30);
    void ask(3, { numSequences: 2 });
    await settle();
    expect(offers.map(({ pool }) => pool.fingerprint)).toEqual(['q', 'p', 'p']);
  });
});

describe('a picture of a request', () => {
  const BYTES = Uint8Array.from({ length: 9 }, (_, i) => i);

  /** A request whose worker asks for its picture, in parts of 6 bytes at most. */
  async function seeing(bytes: () => Promise<Uint8Array | null>) {
    const at = setUp();
    at.beat('a');
    const picture = { digest: Uint8Array.of(7), width: 3, height: 1, numBytes: BYTES.length, bytes };
    const controller = new AbortController();
    const asked = at.ask(3, { sentPictures: [picture], signal: controller.signal });
    await settle();
    at.hold('a');
    const { id } = at.last().item;
    const part = (offset: number, length: number, changes: object = {}) =>
      at.gateway.onPicture({ kind: 'picture', id, attempt: 1, index: 0, offset, length, ...changes }, 6);
    return { ...at, asked, part, cancel: () => controller.abort() };
  }
  const partOf = (begin: number, end: number) => {
    const bytes = BYTES.subarray(begin, end);
    return { kind: 'blocksPart', bytes, sum: crc32(bytes) };
  };

  it('is told by its size, and sent in parts to those who have the request', async () => {
    const { last, part } = await seeing(async () => BYTES);
    expect(last().item.pictures).toEqual([{ digest: Uint8Array.of(7), width: 3, height: 1, numBytes: 9 }]);
    expect(await part(0, 6)).toEqual(partOf(0, 6));
    expect(await part(6, 6)).toEqual(partOf(6, 9));
    for (const changes of [{ attempt: 2 }, { id: 'g-9' }, { index: 1 }, { length: 7 }])
      expect(await part(0, 6, changes)).toBe(NO_BLOCKS);
  });

  it('comes later where its file cannot be read at present', async () => {
    let isBusy = true;
    const { part } = await seeing(async () => (isBusy ? null : BYTES));
    expect(await part(0, 6)).toBe(NO_BLOCKS);
    isBusy = false;
    expect(await part(0, 6)).toEqual(partOf(0, 6));
  });

  it('is sent no more when the request has ended while its file was read', async () => {
    let read: (bytes: Uint8Array) => void = () => {};
    const { part, cancel, asked } = await seeing(() => new Promise((resolve) => (read = resolve)));
    const answer = part(0, 6);
    cancel();
    expect((await asked).finishReason).toBe('cancelled');
    read(BYTES);
    expect(await answer).toBe(NO_BLOCKS);
  });

  it.each([
    ['the request is at fault', RequestError.of(failure('invalid', 'It is damaged.')), 'It is damaged.'],
    ['something else is', new Error('no memory'), 'no memory'],
  ])('ends its request where it cannot be read, and %s', async (_, error, text) => {
    const { part, asked } = await seeing(() => Promise.reject(error));
    const failed = expect(asked).rejects.toThrow(text);
    expect(await part(0, 6)).toBe(NO_BLOCKS);
    await failed;
  });
});
