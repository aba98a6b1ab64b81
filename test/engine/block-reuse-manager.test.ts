import { GptManager, type GptManagerOptions, InProcessHost, type KvCacheEvent } from 'skein';
import { expect, it } from 'vitest';
import { collectResult, makeRequest, runAlone, tensorOf } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';

const reuse = () => fakeEngine('', { kvCacheConfig: { enableBlockReuse: true } });
const prompt = Array.from({ length: 20 }, (_, index) => index + 1);

it('the first response of a request says how many prompt tokens were in the cache', async () => {
  const responses: Parameters<NonNullable<GptManagerOptions['sendResponse']>>[] = [];
  const waiting = [makeRequest(1n, prompt, 3)];
  await new Promise<void>((resolve, reject) => {
    const manager = new GptManager({
      ...reuse(),
      getInferenceRequests: (max) => waiting.splice(0, max),
      sendResponse: (...response) => {
        responses.push(response);
        const [requestId, , final] = response;
        if (final && requestId === 1n) waiting.push(makeRequest(2n, prompt, 3));
        if (final && requestId === 2n) manager.shutdown().then(resolve, reject);
      },
    });
    manager.ready.catch(reject);
  });
  const found = responses.map(([requestId, outputs]) => [
    requestId,
    tensorOf(outputs, 'cached_tokens')?.data[0] ?? null,
  ]);
  expect(found).toEqual([
    [1n, 0],
    [1n, null],
    [1n, null],
    [2n, 16],
    [2n, null],
    [2n, null],
  ]);
  const second = responses.filter(([requestId]) => requestId === 2n);
  const asResponses = second.map(([requestId, outputs, final, error]) => ({
    requestId,
    outputs,
    final,
    error,
  }));
  expect(collectResult(asResponses)).toEqual(runAlone(makeRequest(2n, prompt, 3)));
});

it('the first piece of a stream says it, and only that, and a salt keeps streams apart', async () => {
  const host = new InProcessHost(reuse());
  await host.ready;
  const found: (number | undefined)[][] = [];
  for (const salt of [{}, {}, { cacheSalt: 7n }]) {
    const cached: (number | undefined)[] = [];
    for await (const piece of host.submit({ promptTokens: prompt, maxNewTokens: 4, ...salt })) {
      cached.push(piece.cachedTokens);
    }
    found.push(cached);
  }
  expect(found.map(([first]) => first)).toEqual([0, 16, 0]);
  expect(found.flatMap(([, ...rest]) => rest).every((value) => value === undefined)).toBe(true);
  const refused = host.submit({ promptTokens: prompt, maxNewTokens: 1, cacheSalt: -1n });
  await expect(refused[Symbol.asyncIterator]().next()).rejects.toThrow('cacheSalt is -1');
  await host.close();
});

it('hostCacheSize gives the cache a second level, of which events tell', async () => {
  const bytesPerBlock = 4 * 8;
  const batches: KvCacheEvent[][] = [];
  const kvCacheConfig = {
    enableBlockReuse: true,
    eventBufferMaxSize: 1000,
    maxTokens: 64,
    hostCacheSize: 5 * bytesPerBlock,
  };
  const host = new InProcessHost({
    ...fakeEngine('maxSeqLen=64', { kvCacheConfig }),
    onKvCacheEvents: (events) => batches.push(events),
  });
  const { memory } = await host.ready;
  expect([memory.kvCacheBytes, memory.secondaryKvCacheBytes]).toEqual([8 * bytesPerBlock, 5 * bytesPerBlock]);
  const cached: (number | undefined)[] = [];
  const long = Array.from({ length: 60 }, (_, index) => index + 30);
  for (const promptTokens of [prompt, long, prompt]) {
    for await (const piece of host.submit({ promptTokens, maxNewTokens: 1 })) cached.push(piece.cachedTokens);
  }
  await host.close();
  expect(cached).toEqual([0, 0, 16]);
  const data = batches.flat().map((event) => event.data);
  expect(data[0]).toEqual({ type: 'created', numBlocksPerCacheLevel: [8, 5] });
  const moves = data.flatMap((event) => ('cacheLevel' in event ? [event.cacheLevel] : []));
  expect(moves).toContainEqual({ oldValue: 0, newValue: 1 });
  expect(moves).toContainEqual({ oldValue: 1, newValue: 0 });
});

it.each([
  [{ hostCacheSize: 1000 }, /kvCacheConfig.hostCacheSize is refused: without enableBlockReuse/],
  [{ enableBlockReuse: true, hostCacheSize: -1 }, /kvCacheConfig.hostCacheSize is -1/],
  [
    { enableBlockReuse: true, hostCacheSize: 1 },
    /kvCacheConfig.hostCacheSize is 1; one KV cache block takes 32/,
  ],
  [{ secondaryOffloadMinPriority: 101 }, /kvCacheConfig.secondaryOffloadMinPriority is 101/],
])('%j is refused', async (kvCacheConfig, sentence) => {
  await expect(async () => {
    const host = new InProcessHost(fakeEngine('', { kvCacheConfig }));
    await host.ready;
  }).rejects.toThrow(sentence);
});

it('events tell the host what is stored under what, an iteration at a time', async () => {
  const batches: KvCacheEvent[][] = [];
  const host = new InProcessHost({
    ...fakeEngine('', { kvCacheConfig: { enableBlockReuse: true } }),
    onKvCacheEvents: (events) => batches.push(events),
  });
  await host.ready;
  for await (const _ of host.submit({ promptTokens: prompt, maxNewTokens: 6, temperature: 0 }));
  await host.close();
  const events = batches.flat();
  expect(events.map(({ eventId }) => eventId)).toEqual([0, 1, 2]);
  expect(events.map(({ data }) => data)).toMatchObject([
    { type: 'created', numBlocksPerCacheLevel: [expect.any(Number)] },
    {
      type: 'stored',
      parentHash: null,
      blocks: [{ tokens: prompt.slice(0, 8) }, { tokens: prompt.slice(8, 16) }],
    },
    // 20 + 5 tokens are written when it ends: the third block is full, with four generated tokens.
    {
      type: 'stored',
      parentHash: expect.any(Number),
      blocks: [{ tokens: expect.arrayContaining(prompt.slice(16)) }],
    },
  ]);
  expect(batches.length).toBe(2);
});
