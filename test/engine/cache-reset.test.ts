import { GptManager, InProcessHost } from 'skein';
import { afterEach, expect, it } from 'vitest';
import { makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { fakeEngine, supportModule } from '../support/fake-engine.js';
import { SteppedHost } from '../support/stepped-host.js';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const kvCacheConfig = { enableBlockReuse: true, eventBufferMaxSize: 1000 };
const prompt = Array.from({ length: 20 }, (_, index) => index + 1);

async function answer(host: InProcessHost, maxNewTokens: number) {
  const tokens: number[] = [];
  let cached = -1;
  for await (const piece of host.submit({ promptTokens: prompt, maxNewTokens, temperature: 0 })) {
    tokens.push(...piece.tokens);
    cached = piece.cachedTokens ?? cached;
  }
  return { tokens, cached };
}

it('a reset drops what later prompts could find, says how many blocks that were, and can be repeated', async () => {
  const host = new InProcessHost(fakeEngine('', { kvCacheConfig }));
  closing.push(() => host.close());
  await host.ready;
  expect(await host.resetCache()).toBe(0);
  const first = await answer(host, 13); // 20 + 13 tokens, of which the last is never written: 4 full blocks
  expect((await answer(host, 3)).cached).toBe(19);
  expect(await host.resetCache()).toBe(4);
  expect(await Promise.all([host.resetCache(), host.resetCache()])).toEqual([0, 0]);
  expect(await answer(host, 13)).toEqual({ ...first, cached: 0 });
  expect((await answer(host, 3)).cached).toBe(19);
});

it('what runs keeps its blocks and its answer, but leaves nothing', async () => {
  const stepped = new SteppedHost({ kvCacheConfig });
  closing.push(() => stepped.close());
  const { host } = stepped;
  await host.ready;
  const running = answer(host, 12);
  await stepped.reach(4);
  const reset = host.resetCache();
  await stepped.finish(4);
  expect(await reset).toBe(2);
  stepped.open();
  expect((await running).tokens).toEqual(runAlone(makeRequest(1n, prompt, 12)).tokens);
  expect((await answer(host, 2)).cached).toBe(0);
  expect((await answer(host, 2)).cached).toBe(16);
});

it('works beside callbacks in a module, and answers when no worker runs', async () => {
  const manager = new GptManager({
    ...fakeEngine('', { kvCacheConfig }),
    onError: () => {}, // of the module's own making
    callbackModule: supportModule('counting-callbacks.mjs'),
  });
  expect(await manager.resetCache()).toBe(0); // it still loads
  await manager.ready;
  expect(await manager.resetCache()).toBeGreaterThanOrEqual(0);
  await manager.shutdown();
  expect(await manager.resetCache()).toBe(0);
});

it('fails with the worker that was to do it', async () => {
  const executorModule = new URL('../support/modules/troubled-executor.mjs', import.meta.url);
  const host = new InProcessHost({
    ...fakeEngine('', { executorModule, watchdogTimeoutMs: 200, workerRestart: { delayMs: 1 } }),
    onError: () => {}, // it is asked to
  });
  closing.push(() => host.close({ abort: true }));
  await host.ready;
  // Its step never ends, so whatever is asked from some time on is still to be done when the watchdog ends the worker.
  const deadly = host
    .submit({ promptTokens: [93, 93, 93], maxNewTokens: 5 })
    [Symbol.asyncIterator]()
    .next();
  const resets = async () => {
    for (;;) await host.resetCache();
  };
  await Promise.all([
    expect(deadly).rejects.toThrow('finished no iteration within 200 ms'),
    expect(resets()).rejects.toThrow(/The cache was not reset: .*finished no iteration within 200 ms/),
  ]);
});
