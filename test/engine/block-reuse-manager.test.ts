import { GptManager, type GptManagerOptions, InProcessHost } from 'skein';
import { expect, it } from 'vitest';
import { fakeEngine } from '../support/fake-engine.js';
import { collectResult, makeRequest, runAlone, tensorOf } from '../support/loop-harness.js';

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
  const asResponses = second.map(([requestId, outputs, final, error]) => ({ requestId, outputs, final, error }));
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
  expect(() => host.submit({ promptTokens: prompt, maxNewTokens: 1, cacheSalt: -1n })).toThrow('cacheSalt is -1');
  await host.close();
});
