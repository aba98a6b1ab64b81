import { pathToFileURL } from 'node:url';
import { isMainThread, threadId } from 'node:worker_threads';
import { GptManager, type GptManagerOptions, InProcessHost, type InProcessHostOptions } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import { fakeEngine, supportModule } from '../support/fake-engine.js';

const PROMPT = [1, 2];

const only = (logits: Float32Array, token: number) => {
  logits.fill(Number.NEGATIVE_INFINITY);
  logits[token] = 1;
};

let host: InProcessHost;
afterEach(() => host?.close());

type Given = Partial<Pick<InProcessHostOptions, 'logitsPostProcessors' | 'logitsPostProcessorBatched'>>;

function newHost(given: Given, params: InProcessHostOptions['optionalParams'] = {}): InProcessHost {
  host = new InProcessHost({ ...fakeEngine('', params), ...given });
  return host;
}

async function run(logitsPostProcessor?: string, clientId?: bigint): Promise<number[]> {
  const tokens: number[] = [];
  const request = {
    promptTokens: PROMPT,
    maxNewTokens: 3,
    temperature: 0,
    ...(logitsPostProcessor === undefined ? {} : { logitsPostProcessor }),
    ...(clientId === undefined ? {} : { clientId }),
  };
  for await (const piece of host.submit(request)) tokens.push(...piece.tokens);
  return tokens;
}

describe('a logits post-processor that is a function', () => {
  it('runs in the thread that made the host, with what a module gets, beside those of a module', async () => {
    const calls: unknown[] = [];
    newHost(
      {
        logitsPostProcessors: {
          mine: (requestId, logits, tokensPerBeam, stream, clientId) => {
            stream.synchronize();
            calls.push([
              requestId,
              tokensPerBeam.map((tokens) => [...tokens]),
              clientId,
              threadId,
              isMainThread,
            ]);
            only(logits, 40 + calls.length);
          },
          another: (_, logits) => new Float32Array(logits.length).fill(-Infinity).with(9, 5),
        },
      },
      { logitsPostProcessorModule: pathToFileURL(supportModule('post-processors.mjs')) },
    );
    expect(await run('mine', 7n)).toEqual([41, 42, 43]);
    const here = [threadId, isMainThread];
    expect(calls).toEqual([
      [1n, [PROMPT], 7n, ...here],
      [1n, [[...PROMPT, 41]], 7n, ...here],
      [1n, [[...PROMPT, 41, 42]], 7n, ...here],
    ]);
    expect(await Promise.all([run('another'), run('batched'), run('favourite', 71n)])).toEqual(
      [9, 33, 71].map((token) => [token, token, token]),
    );
  });

  it('and is batched gets all requests of an iteration in one call', async () => {
    const sizes: number[] = [];
    newHost({
      logitsPostProcessorBatched: (requestIds, logits) => {
        sizes.push(requestIds.length);
        for (const [i, view] of logits.entries()) only(view, Number(requestIds[i]) + 10);
      },
    });
    await host.ready;
    const answers = await Promise.all([run('batched'), run('batched'), run()]);
    expect(answers.slice(0, 2)).toEqual([
      [11, 11, 11],
      [12, 12, 12],
    ]);
    expect(Math.max(...sizes)).toBe(2);
  });

  it('fails its own request alone where it throws, returns something else or a promise', async () => {
    newHost({
      logitsPostProcessors: {
        throws: () => {
          throw new Error('no luck');
        },
        short: () => new Float32Array(3),
        later: (async () => {}) as unknown as () => void,
        fine: (_, logits) => only(logits, 5),
      },
    });
    await host.ready;
    const answers = ['throws', 'short', 'later', 'fine'].map((name) => run(name));
    await expect(answers[0]).rejects.toThrow('The logits post-processor throws failed: no luck.');
    await expect(answers[1]).rejects.toThrow(
      /short failed: it returned Float32Array of 3 values; a Float32Array of/,
    );
    await expect(answers[2]).rejects.toThrow(/later failed: it returned a promise/);
    expect(await answers[3]).toEqual([5, 5, 5]);
  });

  it('that takes too long is not waited for: its request fails, and the loop goes on', async () => {
    newHost(
      {
        logitsPostProcessors: {
          slow: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600),
          fine: (_, logits) => only(logits, 5),
        },
      },
      { logitsPostProcessorTimeoutMs: 200 },
    );
    await host.ready;
    await expect(run('slow')).rejects.toThrow(/slow did not end within its time limit of 200 ms/);
    expect([host.state, host.restarts]).toEqual(['running', 0]);
    // A busy machine may hold this thread for longer than the limit, too.
    await expect.poll(() => run('fine').catch(() => null)).toEqual([5, 5, 5]);
  });

  it('is known by name: others are refused with the names that there are', async () => {
    newHost({ logitsPostProcessors: { mine: () => {} } });
    await expect(run('yours')).rejects.toThrow(/there are mine\.$/);
    await host.close();
    newHost({});
    await expect(run('yours')).rejects.toThrow(/give the manager logitsPostProcessors or/);
  });

  it('of the same name as one of the module is refused when the engine loads', async () => {
    newHost(
      { logitsPostProcessors: { favourite: () => {} } },
      { logitsPostProcessorModule: pathToFileURL(supportModule('post-processors.mjs')) },
    );
    await expect(host.ready).rejects.toThrow(/favourite is both a function given to the manager and/);
  });

  it.each<[object, RegExp]>([
    [
      { logitsPostProcessors: { mine: 5 } },
      /logitsPostProcessors is a plain object; it must be an object of functions/,
    ],
    [{ logitsPostProcessors: { batched: () => {} } }, /none of them batched/],
    [{ logitsPostProcessorBatched: 'mine' }, /logitsPostProcessorBatched is mine; it must be a function/],
    [{ logitsPostProcessors: { a() {} }, modelType: 'V1' }, /V1 has no logits post-processors/],
    [
      { logitsPostProcessorBatched() {}, optionalParams: { isolate: true } },
      /cannot call functions of this one; give logitsPostProcessorModule/,
    ],
  ])('%o is refused before anything is loaded', (given, message) => {
    const options = { ...fakeEngine(''), getInferenceRequests: () => [], sendResponse: () => {}, ...given };
    expect(() => new GptManager(options as GptManagerOptions)).toThrow(message);
  });
});
