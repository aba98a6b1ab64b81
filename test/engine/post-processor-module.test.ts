import { pathToFileURL } from 'node:url';
import { GptManager, type GptManagerOptions, InProcessHost } from 'skein';
import { describe, expect, it } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { postProcessorsOf } from '../../engine/decoding/post-processors.js';
import { fakeEngine, supportModule } from '../support/fake-engine.js';

const logitsPostProcessorModule = pathToFileURL(supportModule('post-processors.mjs'));

function newHost(params: OptionalParams = {}): InProcessHost {
  return new InProcessHost(fakeEngine('', { logitsPostProcessorModule, ...params }));
}

async function run(host: InProcessHost, logitsPostProcessor?: string, clientId?: bigint): Promise<number[]> {
  const tokens: number[] = [];
  const request = {
    promptTokens: [1, 2],
    maxNewTokens: 3,
    temperature: 0,
    ...(logitsPostProcessor === undefined ? {} : { logitsPostProcessor }),
    ...(clientId === undefined ? {} : { clientId }),
  };
  for await (const piece of host.submit(request)) tokens.push(...piece.tokens);
  return tokens;
}

describe('a module with logits post-processors', () => {
  it.each([
    ['thread', {}],
    ['process', { isolate: true }],
  ])(
    'is loaded into the worker, a %s: requests name its exports, the entries of its map, and the batched one',
    async (_, params) => {
      const host = newHost(params);
      await host.ready;
      const answers = await Promise.all([
        run(host, 'favourite', 71n),
        run(host, 'favourite'),
        run(host, 'where am I'),
        run(host, 'batched'),
      ]);
      expect(answers).toEqual([71, 0, 2, 33].map((token) => [token, token, token]));
      await expect(run(host, 'favorite')).rejects.toThrow(
        /there are favourite, where am I, endless, batched/,
      );
      await host.close();
    },
  );

  it('with one that never returns: the watchdog ends the worker, and the next one serves on', async () => {
    const host = newHost({ watchdogTimeoutMs: 1000, workerRestart: { delayMs: 1 } });
    host.ready.catch(() => {});
    await host.ready;
    await expect(run(host, 'endless')).rejects.toThrow(/engine failed: .*1000 ms/);
    expect(await run(host, 'batched')).toEqual([33, 33, 33]);
    expect(host.restarts).toBe(1);
    await host.close();
  });

  it('that cannot be loaded, or brings none, rejects ready', async () => {
    const missing = newHost({ logitsPostProcessorModule: 'file:///nowhere/processors.mjs' });
    await expect(missing.ready).rejects.toThrow(/processors\.mjs/);
    await missing.close();
    const empty = newHost({
      logitsPostProcessorModule: pathToFileURL(supportModule('no-post-processors.mjs')),
    });
    await expect(empty.ready).rejects.toThrow(/no-post-processors\.mjs exports no/);
    await empty.close();
  });

  it('is refused with V1 before anything is loaded', () => {
    const options = {
      ...fakeEngine('', { logitsPostProcessorModule }),
      modelType: 'V1',
      getInferenceRequests: () => [],
      sendResponse: () => {},
    } as GptManagerOptions;
    expect(() => new GptManager(options)).toThrow(
      /logitsPostProcessorModule .*V1 has no logits post-processors/,
    );
  });
});

describe('what a module exports', () => {
  const url = 'file:///own.mjs';
  const own = () => {};

  it('counts by its name, but for the default export and what is no function', () => {
    const exports = {
      own,
      other: own,
      limit: 3,
      default: own,
      logitsPostProcessors: new Map([['third', own]]),
    };
    expect(postProcessorsOf(exports, url).names).toEqual(['own', 'other', 'third']);
    expect(postProcessorsOf({ logitsPostProcessorBatched: own }, url).names).toEqual(['batched']);
  });

  it.each([
    [{}, /own\.mjs exports no logits post-processor/],
    [{ limit: 3 }, /exports no logits post-processor/],
    [{ logitsPostProcessors: { a: 5 } }, /registers the logits post-processor a as number; a function/],
    [{ logitsPostProcessors: 'a' }, /exports logitsPostProcessors as a; an object/],
    [{ batched: own }, /registers a logits post-processor as batched, the name of the batched one/],
    [{ own, logitsPostProcessorBatched: {} }, /exports logitsPostProcessorBatched as object; a function/],
  ])('%o is refused by name', (exports, message) => {
    expect(() => postProcessorsOf(exports, url)).toThrow(message);
  });
});
