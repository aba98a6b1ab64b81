import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { failure } from '../../../callbacks/request-failure.js';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { Routed } from '../../../cluster/gateway/cache-routes.js';
import { QueueGateway, type QueueGatewayOptions } from '../../../cluster/gateway/queue-gateway.js';
import { type Beat, type ModelCard, modelKey } from '../../../cluster/nats/beat.js';
import type { CacheAsk, CacheChange, CachePart } from '../../../cluster/nats/cache-messages.js';
import type { GatewayPort, RoutingPort } from '../../../cluster/nats/gateway-port.js';
import type { StopMessage, WorkItem } from '../../../cluster/nats/messages.js';
import type { DirectAnswer } from '../../../cluster/routing/model-routing.js';
import { saltWithAdapter } from '../../../engine/peft/adapter-fingerprint.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';
import { type Answer, answerOf } from '../../../tools/support/queue/answers.js';

const BLOCK = 4;
const MODEL: ModelCard = {
  ...{ name: 'm', aliases: [], text: 't', fileName: 'm', files: [], info: {}, adapterRoom: null },
  adapters: [
    { name: 'a', rank: 1, modules: [], bytes: 1, digest: 'd', blockKey: { taskId: 3, fingerprint: 'ff' } },
    { name: 'old', rank: 1, modules: [], bytes: 1, digest: 'd' },
  ],
  engine: {
    ...{ vocabSize: 100, endTokenIds: [99], maxInputLen: 640, maxSeqLen: 640, maxSequences: 8 },
    ...{ maxNumTokens: 640, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: BLOCK },
  },
};
const KEY = modelKey(MODEL);
const PROMPT = Array.from({ length: 41 }, (_, i) => i);

const closing: QueueGateway[] = [];
afterEach(() => {
  for (const gateway of closing.splice(0)) gateway.close();
});

interface Sent {
  worker: string;
  item: WorkItem;
  answer: (answer: DirectAnswer) => void;
}

/** A gateway that routes by caches; the test plays its stream and its workers. */
function setUp(more: Partial<QueueGatewayOptions> = {}) {
  const offers: WorkItem[] = [];
  const stops: [string, StopMessage][] = [];
  const sent: Sent[] = [];
  const asks: [string, CacheAsk, (answer: CacheChange | CachePart | null) => void][] = [];
  const routed: Routed[] = [];
  const port: GatewayPort & RoutingPort = {
    offer: async (_, item) => {
      offers.push(item);
      return { withdraw: () => {} };
    },
    stop: (worker, message) => stops.push([worker, message]),
    probe: async () => null,
    direct: (worker, item) => new Promise((answer) => sent.push({ worker, item, answer })),
    askCache: (worker, ask) => new Promise((answer) => asks.push([worker, ask, answer])),
  };
  const gateway = new QueueGateway({
    ...{ id: 'g', port, workerWaitMs: 1e6, allowsDifferentBits: false, maxLocalPrefillLength: 1e6 },
    silence: { probeAfterMs: 1e6, lostAfterMs: 1e7, untoldAfterMs: 1e7 },
    routing: { port, onRouted: (one) => routed.push(one) },
    onBeat: () => {},
    onLost: () => {},
    onWarning: () => {},
    ...more,
  });
  closing.push(gateway);
  gateway.open(KEY, { maxQueueSize: 1000, fairQueueing: false });
  const beat = (worker: string, changes: Partial<Beat> = {}) =>
    gateway.onBeat({
      ...{ kind: 'beat', worker, pool: 'p', model: MODEL, places: 4, held: 0, maxBlocks: 9, usedBlocks: 0 },
      ...{ isLeaving: false, isGone: false, cacheNumber: 0 },
      ...changes,
    });
  const change = (worker: string, from: number, hashes: readonly number[], isAnew = from === 0) =>
    gateway.onCache({
      ...{ kind: 'cacheChange', worker, from, next: from + 1, isAnew },
      ...{ stored: Float64Array.from(hashes), removed: new Float64Array(0) },
    });
  /** A worker whose cache has these blocks. */
  const holder = (worker: string, hashes: readonly number[], changes: Partial<Beat> = {}) => {
    beat(worker, changes);
    change(worker, 0, hashes);
    beat(worker, { ...changes, cacheNumber: 1 });
  };
  const ask = (changes: Partial<TokenRequest> = {}): Promise<Answer> =>
    answerOf(gateway.submit(KEY, { promptTokens: PROMPT, maxNewTokens: 4, ...changes })[0]!);
  const hold = (worker: string, items: readonly WorkItem[]) =>
    gateway.onHold({ kind: 'hold', worker, held: items.map(({ id, attempt }) => [id, attempt]) });
  const send = (
    worker: string,
    { id, attempt }: WorkItem,
    index: number,
    tokens: number[],
    isEnd = false,
  ) => {
    const piece = { tokens: Int32Array.from(tokens), finishReason: isEnd ? ('length' as const) : null };
    gateway.onFrames({
      ...{ kind: 'frames', worker, failures: [] },
      frames: [{ id, attempt, sequence: 0, index, piece }],
    });
  };
  return { gateway, offers, stops, sent, asks, routed, beat, change, holder, ask, hold, send };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const hashes = (tokens: readonly number[] = PROMPT, salt = 0n) => promptHashes({ salt }, tokens, BLOCK);

describe('a request', () => {
  it('goes to the worker that has its beginning, and not into the stream', async () => {
    const { holder, ask, sent, offers, send, gateway, routed } = setUp();
    holder('empty', []);
    holder('full', hashes().slice(0, 6));
    const answer = ask();
    await settle();
    expect(sent.map(({ worker }) => worker)).toEqual(['full']);
    const [{ item, answer: reply }] = sent as [Sent];
    expect(item).toMatchObject({ kind: 'work', gateway: 'g', attempt: 1 });
    reply('taken');
    await settle();
    send('full', item, 0, [1, 2, 3, 4], true);
    expect((await answer).tokens).toEqual([1, 2, 3, 4]);
    expect(offers).toEqual([]);
    expect(routed).toMatchObject([{ worker: 'full', cachedBlocks: 6, blocks: 10, answer: 'taken' }]);
    expect(gateway.routingOf(KEY)).toMatchObject({ cached: 1, uncached: 0, cachedBlocks: 6, streamed: 0 });
  });

  it('goes to a prefill worker only where more is missing than is computed at once', async () => {
    for (const [cached, places, to] of [
      [0, 4, 'prefiller'],
      [5, 4, 'prefiller'],
      [8, 4, 'answerer'],
      [8, 0, 'prefiller'],
    ] as const) {
      const { holder, ask, sent } = setUp({ maxLocalPrefillLength: 4 * BLOCK });
      holder('prefiller', hashes(), { pool: 'prefill', isPrefill: true, layout: 'l' });
      holder('answerer', hashes().slice(0, cached), { layout: 'l', places });
      void ask();
      await settle();
      expect(sent.map(({ worker }) => worker)).toEqual([to]);
      expect(sent[0]!.item.isPrefill === true).toBe(to === 'prefiller');
    }
  });

  it.each<DirectAnswer>(['full', 'nobody', 'silent', 'unsent'])(
    'goes into the stream, in the same attempt, if its worker is %s',
    async (why) => {
      const { holder, ask, sent, offers, hold, send, gateway, stops } = setUp();
      holder('w', hashes());
      holder('v', []);
      const answer = ask();
      await settle();
      sent[0]!.answer(why);
      await settle();
      expect(offers).toEqual([sent[0]!.item]);
      hold('v', offers);
      // It had it all the same, and is asked to stop.
      expect(hold('w', offers).stale).toEqual([[offers[0]!.id, 1]]);
      send('w', offers[0]!, 0, [9], false);
      expect(stops).toMatchObject([['w', { id: offers[0]!.id, attempt: 1 }]]);
      send('v', offers[0]!, 0, [1, 2], true);
      expect((await answer).tokens).toEqual([1, 2]);
      expect(gateway.routingOf(KEY)).toMatchObject({
        direct: { [why]: 1, taken: 0 },
        streamed: 1,
        cached: 0,
      });
    },
  );

  it.each<DirectAnswer>(['full', 'nobody', 'silent'])(
    'is not sent to a worker that was %s until it is heard of again',
    async (why) => {
      const { holder, ask, sent, beat } = setUp();
      holder('w', hashes());
      holder('v', []);
      void ask();
      await settle();
      sent[0]!.answer(why);
      await settle();
      void ask();
      await settle();
      beat('w', { cacheNumber: 1 });
      void ask();
      await settle();
      expect(sent.map(({ worker }) => worker)).toEqual(['w', 'v', 'w']);
    },
  );

  it("is the worker's that says it has it, before or without an answer", async () => {
    const { holder, ask, sent, offers, hold, send } = setUp();
    holder('w', hashes());
    const answer = ask();
    await settle();
    hold('w', [sent[0]!.item]);
    sent[0]!.answer('silent');
    await settle();
    expect(offers).toEqual([]);
    send('w', sent[0]!.item, 0, [5], true);
    expect((await answer).tokens).toEqual([5]);
  });

  it('that is cancelled on its way is taken back', async () => {
    const { holder, ask, sent, offers, stops } = setUp();
    holder('w', hashes());
    const aborting = new AbortController();
    void ask({ signal: aborting.signal });
    await settle();
    aborting.abort();
    sent[0]!.answer('taken');
    await settle();
    expect(stops).toMatchObject([['w', { kind: 'stop', attempt: 1, sequence: null }]]);
    expect(offers).toEqual([]);
  });

  it('goes on elsewhere, behind its tokens, when the worker is lost', async () => {
    const { holder, beat, ask, sent, send } = setUp();
    holder('w', hashes());
    holder('v', []);
    const answer = ask();
    await settle();
    sent[0]!.answer('taken');
    await settle();
    send('w', sent[0]!.item, 0, [1, 2]);
    beat('w', { isGone: true });
    await settle();
    expect(sent[1]).toMatchObject({ worker: 'v', item: { attempt: 2, known: [2] } });
    sent[1]!.answer('taken');
    await settle();
    send('v', sent[1]!.item, 2, [3], true);
    expect((await answer).tokens).toEqual([1, 2, 3]);
  });

  it('is not chosen for again by the worker that has forgotten it, or failed', async () => {
    for (const others of [['v'], []]) {
      const { gateway, holder, ask, sent, offers, hold } = setUp();
      holder('w', hashes());
      for (const other of others) holder(other, []);
      void ask();
      await settle();
      const [{ worker, item, answer }] = sent as [Sent];
      answer('taken');
      await settle();
      if (others.length > 0) hold(worker, []);
      else {
        const failed = { id: item.id, attempt: 1, failure: failure('internal', 'no memory') };
        gateway.onFrames({ kind: 'frames', worker, frames: [], failures: [failed] });
      }
      await settle();
      const again =
        others.length > 0 ? sent.slice(1).map(({ worker }) => worker) : offers.map(({ attempt }) => attempt);
      expect(again).toEqual(others.length > 0 ? ['v'] : [2]);
      expect(sent).toHaveLength(1 + others.length);
    }
  });

  it.each<[string, Partial<TokenRequest>, number[], number]>([
    ['with a salt', { cacheSalt: 7n }, hashes(PROMPT, 7n), 10],
    ['of another salt', { cacheSalt: 8n }, hashes(PROMPT, 7n), 0],
    [
      'with an adapter',
      { adapterName: 'a' },
      promptHashes({ salt: saltWithAdapter(0n, 'ff'), loraId: 3n }, PROMPT, BLOCK),
      10,
    ],
    ['with an adapter of which nothing is known', { adapterName: 'old' }, hashes(), 0],
    ['whose log-probs are wanted', { returnContextLogProbs: true }, hashes(), 0],
  ])('%s is looked for as the engine keeps it', async (_, request, there, cachedBlocks) => {
    const { holder, ask, sent, routed } = setUp();
    holder('w', there);
    void ask(request);
    await settle();
    sent[0]!.answer('taken');
    await settle();
    expect(routed).toMatchObject([{ cachedBlocks }]);
  });
});

describe('a popular worker', () => {
  it('is passed over when it has no room, and others wait no longer for that', async () => {
    const { holder, ask, sent } = setUp();
    holder('w', hashes(), { places: 2 });
    holder('v', [], { places: 8 });
    for (let i = 0; i < 5; i++) void ask();
    await settle();
    const of = (worker: string) => sent.filter((one) => one.worker === worker).length;
    expect(of('w')).toBeLessThanOrEqual(2);
    expect(of('w') + of('v')).toBe(5);
  });

  it('gets no more than it has room for; the rest waits, and is sent when there is room', async () => {
    const { holder, ask, sent, offers, send, hold } = setUp();
    holder('w', hashes(), { places: 2 });
    const answers = Array.from({ length: 4 }, () => ask());
    await settle();
    expect(sent).toHaveLength(2);
    expect(offers).toEqual([]);
    for (const { answer } of sent) answer('taken');
    await settle();
    expect(sent).toHaveLength(2);
    for (const next of [0, 1, 2, 3]) {
      const { item, answer } = sent[next]!;
      answer('taken');
      await settle();
      hold(
        'w',
        sent.slice(next).map((one) => one.item),
      );
      send('w', item, 0, [next], true);
      await settle();
    }
    expect((await Promise.all(answers)).map(({ tokens }) => tokens)).toEqual([[0], [1], [2], [3]]);
    expect(offers).toEqual([]);
  });

  it('gets the next ones as it begins to answer those before', async () => {
    const { holder, ask, sent, send } = setUp();
    holder('w', hashes(), { places: 64 });
    for (let i = 0; i < 12; i++) void ask();
    await settle();
    // More would only wait there.
    expect(sent).toHaveLength(8);
    sent[0]!.answer('taken');
    await settle();
    send('w', sent[0]!.item, 0, [1]);
    await settle();
    expect(sent).toHaveLength(9);
  });

  it('whose places others have is waited for in the stream, where all gateways take turns', async () => {
    const { holder, ask, sent, offers } = setUp();
    holder('w', hashes(), { places: 2, held: 2 });
    void ask();
    void ask();
    await settle();
    expect(sent).toEqual([]);
    expect(offers).toHaveLength(1);
  });
});

describe('a worker of an older version', () => {
  it('gets requests from the stream, beside others', async () => {
    const { gateway, holder, ask, sent, offers, beat, hold } = setUp();
    const old: Beat = {
      ...{ kind: 'beat', worker: 'old', pool: 'p', model: MODEL, places: 1, held: 0, maxBlocks: 9 },
      ...{ usedBlocks: 0, isLeaving: false, isGone: false },
    };
    gateway.onBeat(old);
    void ask();
    await settle();
    expect(offers).toHaveLength(1);
    hold('old', offers);
    holder('w', hashes());
    void ask();
    await settle();
    expect(sent.map(({ worker }) => worker)).toEqual(['w']);
    // A worker that is restarted with an older version takes none any more.
    sent[0]!.answer('full');
    const { cacheNumber: _, ...older } = { ...old, worker: 'w' };
    gateway.onBeat(older);
    beat('old', { ...old, held: 1 });
    void ask();
    await settle();
    expect(sent).toHaveLength(1);
  });
});

describe('what a worker tells of its cache', () => {
  it('is asked for when something of it is missing, and not believed without an answer', async () => {
    const { beat, change, holder, asks, ask, sent, routed, gateway } = setUp();
    beat('w', { cacheNumber: 5 });
    expect(asks[0]!.slice(0, 2)).toMatchObject(['w', { from: 0, whole: null }]);
    asks[0]![2]({ kind: 'cachePart', next: 5, offset: 0, total: 10, blocks: Float64Array.from(hashes()) });
    await settle();
    change('w', 7, [1]);
    expect(asks[1]!.slice(0, 2)).toMatchObject(['w', { from: 5 }]);
    asks[1]![2](null);
    await settle();
    void ask();
    await settle();
    sent[0]!.answer('taken');
    await settle();
    expect(routed).toMatchObject([{ worker: 'w', cachedBlocks: 0 }]);
    // One that is asked in vain is left alone for a while.
    beat('w', { cacheNumber: 8 });
    expect(asks).toHaveLength(3);
    asks[2]![2](null);
    await settle();
    for (let i = 0; i < 3; i++) beat('w', { cacheNumber: 8 });
    expect(asks).toHaveLength(4);
    holder('v', []);
    expect(gateway.roster.size).toBe(2);
  });

  it('is forgotten with it', async () => {
    const { holder, beat, ask, sent, routed } = setUp();
    holder('w', hashes());
    beat('w', { isGone: true });
    beat('w');
    beat('v');
    void ask();
    await settle();
    sent[0]!.answer('taken');
    await settle();
    expect(routed).toMatchObject([{ cachedBlocks: 0 }]);
  });

  it('is asked of a few workers at a time', async () => {
    const { beat, asks } = setUp();
    for (let i = 0; i < 20; i++) beat(`w${i}`, { cacheNumber: 1 });
    expect(asks).toHaveLength(8);
    asks[0]![2](null);
    await vi.waitFor(() => expect(asks).toHaveLength(9), 120_000);
  });
});

/** What happens next. */
const STEP = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('ask' as const), prompt: fc.nat(3) }) },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant('reply' as const), at: fc.nat(3), isHeard: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('pull' as const), worker: fc.nat(2) }) },
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('work' as const), worker: fc.nat(2), at: fc.nat(3) }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('beat' as const), worker: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('die' as const), worker: fc.nat(2) }) },
);

it('every request is answered once, whoever takes, refuses, is silent or dies', async () => {
  const PLACES = 2;
  let numDirect = 0;
  let numStreamed = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 40, maxLength: 90 }), async (steps) => {
      const { gateway, ask, sent, offers, beat, hold, send, change } = setUp({
        rules: { maxFruitlessAttempts: 1e6, maxLostAttempts: 1e6, maxAttempts: 1e6 },
      });
      const names = ['u', 'v', 'w'];
      const lives = [0, 0, 0];
      const name = (i: number) => `${names[i]}${lives[i]}`;
      const held = [0, 1, 2].map(() => new Map<string, WorkItem>());
      const answers: Promise<Answer>[] = [];
      let numAnswered = 0;
      const dropStale = (i: number) => {
        for (const [id] of hold(name(i), [...held[i]!.values()]).stale) held[i]!.delete(id);
      };
      const tell = (i: number) => {
        beat(name(i), { places: PLACES, held: held[i]!.size, cacheNumber: 1 });
        dropStale(i);
      };
      const take = (i: number, item: WorkItem) => {
        held[i]!.set(item.id, item);
        expect(held[i]!.size).toBeLessThanOrEqual(PLACES);
        dropStale(i);
      };
      const start = (i: number) => {
        beat(name(i), { places: PLACES });
        change(name(i), 0, hashes(PROMPT.map((token) => token + i)));
        tell(i);
      };
      const finish = (i: number, at: number) => {
        const item = [...held[i]!.values()][at];
        if (item === undefined) return;
        held[i]!.delete(item.id);
        send(name(i), item, item.known[0] ?? 0, [Number(item.id.slice(2))], true);
      };
      const reply = ({ worker, item, answer }: Sent, isHeard: boolean) => {
        const i = names.indexOf(worker[0]!);
        if (worker !== name(i)) answer('nobody');
        else if (held[i]!.has(item.id) || held[i]!.size >= PLACES) answer('full');
        else {
          numDirect += 1;
          // The answer of one that has it is lost, or comes before or after its own word.
          take(i, item);
          answer(isHeard ? 'taken' : 'silent');
        }
      };
      for (const i of [0, 1, 2]) start(i);
      for (const step of steps) {
        if (step.type === 'ask')
          answers.push(
            ask({ promptTokens: PROMPT.map((token) => token + step.prompt) }).finally(() => numAnswered++),
          );
        if (step.type === 'reply') for (const one of sent.splice(step.at, 1)) reply(one, step.isHeard);
        if (step.type === 'pull' && held[step.worker]!.size < PLACES) {
          numStreamed += offers.length > 0 ? 1 : 0;
          for (const item of offers.splice(0, 1)) take(step.worker, item);
        }
        if (step.type === 'work') finish(step.worker, step.at);
        if (step.type === 'beat') tell(step.worker);
        if (step.type === 'die') {
          const gone = name(step.worker);
          lives[step.worker]! += 1;
          held[step.worker]!.clear();
          beat(gone, { isGone: true });
          start(step.worker);
        }
        await settle();
      }
      // All goes well from here on.
      for (let round = 0; numAnswered < answers.length; round++) {
        expect(round).toBeLessThan(300);
        for (const one of sent.splice(0)) reply(one, true);
        await settle();
        for (const i of [0, 1, 2]) {
          while (held[i]!.size < PLACES && offers.length > 0) take(i, offers.shift()!);
          while (held[i]!.size > 0) finish(i, 0);
          tell(i);
        }
        await settle();
      }
      const tokens = (await Promise.all(answers)).map((answer) => answer.tokens);
      expect(tokens).toEqual(answers.map((_, i) => [i + 1]));
      gateway.close();
    }),
    { seed: 26, numRuns: 60 },
  );
  expect(numDirect).toBeGreaterThan(200);
  expect(numStreamed).toBeGreaterThan(20);
});
