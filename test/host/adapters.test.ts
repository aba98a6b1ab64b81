import { type Formation, InProcessHost, QueueFullError, RequestError, type TokenRequest } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SharedTensors } from '../../callbacks/shared-tensors.js';
import { MAX_PASSED } from '../../host/room-queue.js';
import { inferenceRequestOf } from '../../host/token-inputs.js';
import { fakeEngine } from '../support/fake-engine.js';
import { bringing, fakeAdapter } from '../support/lora-requests.js';

const ASK: TokenRequest = { promptTokens: [1, 2, 3], maxNewTokens: 8, temperature: 0 };

let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost(
    fakeEngine('', { peftCacheManagerConfig: { optimalAdapterSize: 2, maxAdapterSize: 4 } }),
  );
  await host.ready;
});
afterAll(() => host.close());

async function answerOf(
  request: TokenRequest,
  by: InProcessHost,
): Promise<{ tokens: number[]; reason: string }> {
  const tokens: number[] = [];
  let reason = '';
  for await (const piece of by.submit(request)) {
    tokens.push(...piece.tokens);
    reason = piece.finishReason ?? reason;
  }
  return { tokens, reason };
}

async function tokensOf(request: TokenRequest, by = host): Promise<number[]> {
  return (await answerOf(request, by)).tokens;
}

/** Waits until the queue is empty, and looks after each turn: what was taken has no answer yet then. */
async function untilTaken(by: InProcessHost): Promise<void> {
  while (by.queued > 0) await new Promise((resolve) => setImmediate(resolve));
}

it('a request brings its adapter, later ones name it, and one that names another is told to bring it', async () => {
  const plain = await tokensOf(ASK);
  const first = await tokensOf({ ...ASK, loraTaskId: 4n, adapter: fakeAdapter(1) });
  expect(first).not.toEqual(plain);
  expect(await tokensOf({ ...ASK, loraTaskId: 4n })).toEqual(first);
  const unknown = tokensOf({ ...ASK, loraTaskId: 5n });
  await expect(unknown).rejects.toBeInstanceOf(RequestError);
  await expect(unknown).rejects.toMatchObject({ kind: 'adapter', field: 'loraTaskId', isInvalid: true });
  await expect(unknown).rejects.toThrow(
    'loraTaskId is 5, and the engine does not hold that adapter, or no longer; submit the request again with its weights as adapter.',
  );
  expect(await tokensOf({ ...ASK, loraTaskId: 5n, adapter: fakeAdapter(2) })).not.toEqual(first);
});

it('is forgotten where the host says so', async () => {
  const adapter = fakeAdapter(7);
  const request = { ...ASK, loraTaskId: 6n };
  const first = await tokensOf({ ...request, adapter });
  host.forgetAdapter(6n);
  // One that comes at the same time may still find it.
  await tokensOf(request).catch(() => {});
  await expect(tokensOf(request)).rejects.toMatchObject({ kind: 'adapter' });
  // A request that brings it again is served.
  expect(await tokensOf({ ...request, adapter })).toEqual(first);
  host.forgetAdapter(8n);
});

it('is forgotten with the last request that uses it, which goes on', async () => {
  const request = { ...ASK, loraTaskId: 6n, maxNewTokens: 200 };
  // Four seconds for the request, of which a few steps are awaited: it cannot have ended before it is looked at.
  const slow = new InProcessHost(
    fakeEngine('stepMs=20', { peftCacheManagerConfig: { optimalAdapterSize: 2, maxAdapterSize: 4 } }),
  );
  const enough = new AbortController();
  const tokens: number[] = [];
  for await (const piece of slow.submit({ ...request, adapter: fakeAdapter(7), signal: enough.signal })) {
    if (tokens.length === 0) {
      expect(slow.adaptersInFlight()).toEqual({ running: new Set([6n]), waiting: new Set() });
      slow.forgetAdapter(6n);
    }
    tokens.push(...piece.tokens);
    if (tokens.length >= ASK.maxNewTokens!) enough.abort();
  }
  const alone = await tokensOf({ ...ASK, loraTaskId: 6n, adapter: fakeAdapter(7) });
  expect(tokens.slice(0, alone.length)).toEqual(alone);
  await expect(tokensOf({ ...request }, slow)).rejects.toMatchObject({ kind: 'adapter' });
  await slow.close();
});

it('is forgotten though requests that were taken before bring it once more', async () => {
  const adapter = fakeAdapter(8);
  const request = { ...ASK, loraTaskId: 9n, adapter };
  const asked = Array.from({ length: 12 }, () => tokensOf({ ...request, maxNewTokens: 60 }));
  await tokensOf({ ...request, maxNewTokens: 1 });
  host.forgetAdapter(9n);
  await Promise.all(asked);
  // One that comes at the same time may still find it.
  await tokensOf({ ...ASK, loraTaskId: 9n }).catch(() => {});
  await expect(tokensOf({ ...ASK, loraTaskId: 9n })).rejects.toMatchObject({ kind: 'adapter' });
});

describe('a cache of the engine with room for six adapters', () => {
  const rows = 6 * 2 * fakeAdapter(1).moduleLayers.length;
  const peftCacheManagerConfig = { optimalAdapterSize: 2, maxAdapterSize: 4, numHostModuleLayer: rows };
  const adapters = Array.from({ length: 20 }, (_, i) => fakeAdapter(i + 1));
  const withAdapter = (i: number): TokenRequest => ({ ...ASK, loraTaskId: BigInt(i), adapter: adapters[i]! });
  let small: InProcessHost;
  let alone: number[][];
  beforeAll(async () => {
    small = new InProcessHost(fakeEngine('', { peftCacheManagerConfig }));
    alone = [];
    for (const i of adapters.keys()) alone.push(await tokensOf(withAdapter(i)));
  });
  afterAll(() => small.close());

  it('serves any number of them: what it has lost is sent again, and nobody hears of it', async () => {
    for (const step of [1, 3, 7]) {
      const order = adapters.map((_, i) => (i * step) % adapters.length);
      for (let begin = 0; begin < order.length; begin += 4) {
        const some = order.slice(begin, begin + 4);
        const answers = await Promise.all([...some, ...some].map((i) => tokensOf(withAdapter(i), small)));
        expect(answers).toEqual([...some, ...some].map((i) => alone[i]));
      }
    }
    await expect(tokensOf({ ...ASK, loraTaskId: 99n }, small)).rejects.toMatchObject({ kind: 'adapter' });
  });

  it('ends what is cancelled on the way there and back', async () => {
    for (const i of adapters.keys()) {
      const controller = new AbortController();
      const answer = answerOf({ ...withAdapter(i), maxNewTokens: 60, signal: controller.signal }, small);
      await new Promise((resolve) => setTimeout(resolve, i % 5));
      controller.abort();
      const { tokens, reason } = await answer;
      expect(tokens.length === 60 ? 'length' : 'cancelled').toBe(reason);
    }
    // The engine refuses most of these at once, since it has lost the adapter; they were cancelled on the way.
    for (const i of adapters.keys()) {
      const controller = new AbortController();
      const answer = answerOf({ ...withAdapter(i), maxNewTokens: 60, signal: controller.signal }, small);
      await untilTaken(small);
      controller.abort();
      const { tokens, reason } = await answer;
      expect(tokens.length === 60 ? 'length' : 'cancelled').toBe(reason);
    }
    await expect.poll(() => small.running + small.queued).toBe(0);
    expect(await tokensOf(withAdapter(3), small)).toEqual(alone[3]);
  });
});

describe('a cache of the engine with room for two adapters of the twenty that are asked at once', () => {
  const rows = 2 * 2 * fakeAdapter(1).moduleLayers.length;
  const peftCacheManagerConfig = { optimalAdapterSize: 2, maxAdapterSize: 4, numHostModuleLayer: rows };
  const adapters = Array.from({ length: 20 }, (_, i) => fakeAdapter(i + 1));
  const withAdapter = (i: number): TokenRequest => ({ ...ASK, loraTaskId: BigInt(i), adapter: adapters[i]! });
  const open = (engine: string) =>
    new InProcessHost(fakeEngine(engine, { peftCacheManagerConfig, maxNumSequences: 16 }));

  it('has the others wait, and each is answered as alone, with a time limit and without', async () => {
    const alone = await Promise.all(
      adapters.map((_, i) => tokensOf({ ...withAdapter(i), maxNewTokens: 40 })),
    );
    const narrow = open('');
    for (const more of [{}, { timeLimitMs: 600_000 }]) {
      const asked = adapters.map((_, i) =>
        tokensOf({ ...withAdapter(i), maxNewTokens: 40, ...more }, narrow),
      );
      expect(await Promise.all(asked)).toEqual(alone);
    }
    await narrow.close();
  });

  it('counts those that wait for room as waiting', async () => {
    const narrow = new InProcessHost({
      ...fakeEngine('stepMs=50', { peftCacheManagerConfig, maxNumSequences: 16 }),
      maxQueueSize: 6,
    });
    const controller = new AbortController();
    const asked: Promise<number[]>[] = [];
    for (const [i] of adapters.entries()) {
      if (i >= 8) break;
      asked.push(tokensOf({ ...withAdapter(i), maxNewTokens: 200, signal: controller.signal }, narrow));
      await expect.poll(() => narrow.running).toBe(Math.min(i + 1, 2));
    }
    expect(narrow.queued).toBe(6);
    expect(() => narrow.submit(ASK)).toThrow(QueueFullError);
    controller.abort();
    await Promise.all(asked);
    await narrow.close();
  });

  it('tells watchers the adapters of requests in the engine, in the queue and without a place for theirs', async () => {
    const narrow = new InProcessHost(
      fakeEngine('stepMs=100', { peftCacheManagerConfig, maxNumSequences: 3 }),
    );
    await narrow.ready;
    let told: Formation | null = null;
    narrow.watchFormation((formation) => {
      told = formation;
    }, 1);
    const controller = new AbortController();
    const ask = (request: TokenRequest) =>
      tokensOf({ ...request, maxNewTokens: 200, signal: controller.signal }, narrow);
    const asked = [ask(ASK), ask({ ...withAdapter(1), adapterName: 'one' }), ask(withAdapter(2))];
    asked.push(
      ask({ ...withAdapter(3), adapterName: 'three' }),
      ask({ ...withAdapter(4), adapterName: 'four' }),
    );
    await expect
      .poll(() => [told?.requests.length, told?.queued, told?.adapters])
      .toEqual([
        5,
        2,
        [
          [2, 'one'],
          [3, '2'],
          [4, 'three'],
          [5, 'four'],
        ],
      ]);
    controller.abort();
    await Promise.all(asked);
    await expect.poll(() => [told?.requests.length, told?.adapters]).toEqual([0, undefined]);
    await narrow.close();
  });

  it('counts those as waiting that wait inside the engine until an iteration takes their adapter', async () => {
    const params = { peftCacheManagerConfig: { optimalAdapterSize: 2, maxAdapterSize: 4, maxAdapters: 1 } };
    const one = new InProcessHost(fakeEngine('stepMs=100', params));
    const controller = new AbortController();
    const asked = [0, 1, 2].map((i) =>
      tokensOf({ ...withAdapter(i), maxNewTokens: 200, signal: controller.signal }, one),
    );
    asked.push(tokensOf({ ...withAdapter(0), maxNewTokens: 200, signal: controller.signal }, one));
    const both = () => ({ ...one.adaptersInFlight(), numbers: [one.running, one.queued, one.waiting] });
    const waiting = new Set([1n, 2n]);
    await expect.poll(both).toEqual({ running: new Set([0n]), waiting, numbers: [4, 0, 2] });
    controller.abort();
    await Promise.all(asked);
    expect([one.size, one.waiting]).toEqual([0, 0]);
    await one.close();
  });

  it('serves one that needs half of the room beside others that never leave so much', async () => {
    const narrow = open('');
    let numOthers = 0;
    let isOver = false;
    const others = Array.from({ length: 8 }, async (_, i) => {
      while (!isOver) {
        await tokensOf({ ...withAdapter(i), maxNewTokens: 20 }, narrow);
        numOthers++;
      }
    });
    await expect.poll(() => numOthers).toBeGreaterThan(8);
    const before = numOthers;
    const wide = { ...ASK, loraTaskId: 77n, adapter: fakeAdapter(30, 4) };
    expect(await tokensOf(wide, narrow)).toEqual(await tokensOf(wide));
    const passed = numOthers - before;
    isOver = true;
    await Promise.all(others);
    expect(passed).toBeLessThan(MAX_PASSED + 60);
    await narrow.close();
  });

  it('ends what waits: by its client, by its time, and with the host', async () => {
    // So slow that none ends by itself.
    const slow = open('stepMs=100');
    const controller = new AbortController();
    const endless = { maxNewTokens: 200, signal: controller.signal };
    const leaving = adapters.slice(1).map((_, i) => tokensOf({ ...withAdapter(i + 1), ...endless }, slow));
    await expect.poll(() => [slow.running, slow.queued]).toEqual([2, 17]);
    await tokensOf({ ...withAdapter(0), timeLimitMs: 1 }, slow);
    controller.abort();
    await Promise.all(leaving);
    await expect.poll(() => slow.running + slow.queued).toBe(0);
    const rest = adapters.map((_, i) => tokensOf({ ...withAdapter(i), maxNewTokens: 200 }, slow));
    await expect.poll(() => [slow.running, slow.queued]).toEqual([2, 18]);
    await slow.close({ abort: true });
    await Promise.all(rest);
    expect(slow.running + slow.queued).toBe(0);
  });
});

const layerWith = (wrong: object) => {
  const [layer, ...others] = fakeAdapter(1).moduleLayers;
  return { moduleLayers: [{ ...layer, ...wrong }, ...others] };
};

it.each([
  {},
  null,
  'x',
  [],
  { moduleLayers: [null] },
  { moduleLayers: [{ a: [1], b: [2] }] },
  layerWith({ rank: 1.5 }),
  layerWith({ layer: 2 ** 32 }),
])('one that is %j fails its request alone', async (adapter) => {
  const beside = tokensOf(ASK);
  const wrong = tokensOf({ ...ASK, loraTaskId: 9n, adapter: adapter as never });
  await expect(wrong).rejects.toMatchObject({ kind: 'invalid', field: 'adapter' });
  await expect(wrong).rejects.toThrow('adapter is no adapter; openAdapter reads one.');
  expect((await beside).length).toBeGreaterThan(0);
  expect(host.running + host.queued).toBe(0);
});

it('a number in the place of its id fails its request alone', async () => {
  await expect(tokensOf({ ...ASK, loraTaskId: 7 as never })).rejects.toThrow(
    'loraTaskId is 7; it must be a bigint from 0 to 2^64 - 1, such as 1n.',
  );
});

it('its tensors are made once for requests that share them', () => {
  const adapter = fakeAdapter(1);
  const shared = new SharedTensors();
  const [one, other] = [1n, 2n].map((id) =>
    inferenceRequestOf(id, { ...ASK, loraTaskId: 7n, adapter, shared }),
  );
  expect(one!.inputs).toMatchObject(bringing(7n, adapter));
  for (const name of ['lora_weights', 'lora_config']) expect(one!.inputs[name]).toBe(other!.inputs[name]);
});

it.each([-1n, 2n ** 64n])('an id of %i is refused', (loraTaskId) => {
  expect(() => inferenceRequestOf(1n, { ...ASK, loraTaskId })).toThrow(
    `loraTaskId is ${loraTaskId}; it must be a bigint from 0 to 2^64 - 1`,
  );
});
