import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type FunctionCallbacks, GptManager, type GptManagerOptions, type InferenceRequest } from 'skein';
import { afterEach, describe, expect, it } from 'vitest';
import type { Response } from '../../callbacks/unpack-responses.js';
import {
  collectResult,
  makeRequest,
  type RequestResult,
  runAlone,
} from '../../tools/support/loop-harness.js';
import { fakeEngine, supportModule } from '../support/fake-engine.js';

const managers: GptManager[] = [];
afterEach(async () => {
  for (const manager of managers.splice(0)) await manager.shutdown();
});

/** A client of the callbacks as functions: a queue, the responses by id, and promises of the final ones. */
class Client implements FunctionCallbacks {
  readonly waiting: InferenceRequest[] = [];
  readonly stops = new Set<bigint>();
  readonly responses = new Map<bigint, Response[]>();
  readonly maxima: number[] = [];
  readonly errors: string[] = [];
  readonly stats: string[] = [];
  readonly manager: GptManager;
  readonly #finals = new Map<bigint, () => void>();

  constructor(options: Partial<GptManagerOptions> & { engine?: Parameters<typeof fakeEngine> } = {}) {
    const { engine = [], ...overrides } = options;
    this.manager = new GptManager({
      ...fakeEngine(...engine),
      getInferenceRequests: (max) => this.getInferenceRequests(max),
      sendResponse: (requestId, outputs, final, error) => this.sendResponse(requestId, outputs, final, error),
      pollStopSignals: () => new Set([...this.stops].filter((id) => this.stops.delete(id))),
      returnBatchManagerStats: (json) => {
        this.stats.push(json);
      },
      onError: (error) => this.errors.push(error.message),
      ...overrides,
    } as GptManagerOptions);
    managers.push(this.manager);
  }

  getInferenceRequests(max: number): InferenceRequest[] {
    this.maxima.push(max);
    return this.waiting.splice(0, max);
  }

  sendResponse(requestId: bigint, outputs: Response['outputs'], final: boolean, error: string): void {
    const list = this.responses.get(requestId) ?? [];
    this.responses.set(requestId, list);
    list.push({ requestId, outputs, final, error });
    if (final) this.#finals.get(requestId)?.();
  }

  /** Submits and waits for the final response. */
  async run(request: InferenceRequest): Promise<RequestResult> {
    await this.submit(request);
    return collectResult(this.responses.get(request.requestId)!);
  }

  submit(request: InferenceRequest): Promise<void> {
    const done = new Promise<void>((resolve) => this.#finals.set(request.requestId, resolve));
    this.waiting.push(request);
    this.manager.wake();
    return done;
  }
}

describe('GptManager with functions as callbacks', () => {
  it('loads, runs requests beside each other with the tokens of each alone, drains, and ends', async () => {
    const client = new Client({ engine: ['', { kvCacheConfig: { maxTokens: 256 } }] });
    const info = await client.manager.ready;
    expect(info).toMatchObject({ executor: 'fake', maxNumSequences: 4, vocabSize: 100, numBlocks: 32 });
    expect(client.manager.state).toBe('running');
    const requests = Array.from({ length: 12 }, (_, index) =>
      makeRequest(BigInt(index), [index, 1, 2], 40 + index),
    );
    const results = await Promise.all(requests.map((request) => client.run(request)));
    for (const [index, request] of requests.entries()) {
      expect(results[index]).toEqual(runAlone(request));
    }
    expect(client.maxima.every((max) => max >= 1 && max <= 4)).toBe(true);
    const last = client.submit(makeRequest(99n, [4], 60));
    const shutdown = client.manager.shutdown();
    expect(client.manager.shutdown()).toBe(shutdown);
    await shutdown;
    await last;
    expect(client.responses.get(99n)!.at(-1)).toMatchObject({ final: true, error: '' });
    expect(client.manager.state).toBe('stopped');
    expect(client.manager.numInFlight).toBe(0);
    expect(client.errors).toEqual([]);
    expect(JSON.parse(client.stats[0]!)).toMatchObject({ 'Iteration Counter': 1 });
  });

  it('takes requests from an asynchronous callback, one call at a time, within the credits', async () => {
    let running = 0;
    let mostRunning = 0;
    const waiting = Array.from({ length: 10 }, (_, index) => makeRequest(BigInt(index), [index], 10));
    const finals: bigint[] = [];
    let allDone!: () => void;
    const done = new Promise<void>((resolve) => {
      allDone = resolve;
    });
    const { manager } = new Client({
      getInferenceRequests: async (max: number) => {
        mostRunning = Math.max(mostRunning, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return waiting.splice(0, max);
      },
      sendResponse: async (requestId: bigint, _outputs: unknown, final: boolean, error: string) => {
        await new Promise((resolve) => setImmediate(resolve));
        expect(error).toBe('');
        if (final) finals.push(requestId);
        if (finals.length === 10) allDone();
      },
    });
    await manager.ready;
    await done;
    expect(mostRunning).toBe(1);
    expect(finals.toSorted()).toEqual(Array.from({ length: 10 }, (_, index) => BigInt(index)));
  });

  it('rejects what comes beyond max and what cannot be sent by a final error, a duplicate id by onError', async () => {
    const client = new Client();
    await client.manager.ready;
    const hostile = makeRequest(50n, [1], 3);
    (hostile.inputs as Record<string, unknown>).input_ids = { shape: [1, 1], data: () => 0 };
    expect((await client.run(hostile)).error).toMatch(/cannot be sent/);
    const long = client.submit(makeRequest(1n, [1], 200));
    client.waiting.push(makeRequest(1n, [2], 3));
    client.manager.wake();
    expect(client.errors).toEqual([expect.stringMatching(/id 1 is being processed/)]);
    expect(client.responses.get(1n) ?? []).not.toContainEqual(expect.objectContaining({ final: true }));
    client.getInferenceRequests = () => client.waiting.splice(0);
    const crowd = Array.from({ length: 9 }, (_, index) => makeRequest(BigInt(index + 10), [1], 3));
    client.waiting.push(...crowd.slice(1));
    await client.submit(crowd[0]!);
    const refused = crowd.filter((r) =>
      /were asked for/.test(client.responses.get(r.requestId)?.[0]?.error ?? ''),
    );
    expect(refused.length).toBeGreaterThanOrEqual(5);
    client.stops.add(1n);
    client.manager.wake();
    await long;
  });

  it('goes on when a callback throws, and reports it', async () => {
    let threw = 0;
    const client = new Client({
      pollStopSignals: () => {
        throw new Error('poll');
      },
      returnBatchManagerStats: () => {
        throw new Error('stats');
      },
    });
    const send = client.sendResponse.bind(client);
    client.sendResponse = (...response) => {
      send(...response);
      if (threw++ === 0) throw new Error('send');
    };
    const results = await Promise.all([1n, 2n].map((id) => client.run(makeRequest(id, [Number(id)], 5))));
    expect(results.map((result) => result.tokens.length)).toEqual([5, 5]);
    for (const name of ['pollStopSignals', 'returnBatchManagerStats', 'sendResponse']) {
      expect(client.errors.some((message) => message.startsWith(`The callback ${name} failed`))).toBe(true);
    }
  });

  it('stops a request on a signal', async () => {
    const client = new Client({ engine: ['stepMs=2'] });
    const done = client.submit(makeRequest(1n, [1], 250));
    client.stops.add(1n);
    await done;
    expect(collectResult(client.responses.get(1n)!)).toMatchObject({ finishReason: 5, error: '' });
  });

  it('takes no more requests while responses stay unsettled, and goes on when they settle', async () => {
    const settle: (() => void)[] = [];
    let settling = false;
    const client = new Client({ engine: ['', { maxNumSequences: 1, idlePollIntervalMs: 1 }] });
    const send = client.sendResponse.bind(client);
    client.sendResponse = ((...response: Parameters<typeof send>) => {
      send(...response);
      return settling ? undefined : new Promise<void>((resolve) => settle.push(resolve));
    }) as typeof send;
    await client.run(makeRequest(1n, [1], 16));
    const before = client.maxima.length;
    const second = client.submit(makeRequest(2n, [2], 4));
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(client.maxima.length).toBe(before);
    expect(client.waiting).toHaveLength(1);
    settling = true;
    for (const resolve of settle) resolve();
    await second;
    expect(client.responses.get(2n)).toHaveLength(4);
  });

  it('ends after the request with terminateReqId', async () => {
    const client = new Client({ terminateReqId: 42n });
    const first = client.submit(makeRequest(1n, [1], 30));
    client.waiting.push(makeRequest(42n, [1], 1));
    client.manager.wake();
    await first;
    await client.manager.ended;
    expect(client.manager.state).toBe('stopped');
    expect(collectResult(client.responses.get(1n)!).tokens).toHaveLength(30);
  });
});

describe('a worker that dies', () => {
  it('fails every active request with the reason, and the manager says so', async () => {
    const client = new Client({ engine: ['dieToken=66&stepMs=2', { workerRestart: false }] });
    await client.manager.ready;
    const long = client.run(makeRequest(1n, [1], 250));
    const deadly = client.run(makeRequest(2n, [66], 5));
    for (const result of await Promise.all([long, deadly])) {
      expect(result.error).toMatch(/The engine failed: .*ended unexpectedly with exit code 1/);
    }
    await client.manager.shutdown();
    expect(client.manager.state).toBe('failed');
    expect(client.manager.failure?.message).toMatch(/exit code 1/);
  });

  it('while loading rejects ready with the reason', async () => {
    const client = new Client({ engine: ['failToLoad=no such engine'] });
    await expect(client.manager.ready).rejects.toThrow('no such engine');
    await client.manager.shutdown();
    expect(client.manager.state).toBe('failed');
  });
});

describe('GptManager with callbacks in a module', () => {
  it('calls them inside the worker, survives their errors, and drains on shutdown', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-callbacks-'));
    process.env.SKEIN_TEST_SEEN = join(folder, 'seen.json');
    const errors: string[] = [];
    const iterations: number[] = [];
    const manager = new GptManager({
      ...fakeEngine('', { idlePollIntervalMs: 1 }),
      callbackModule: pathToFileURL(supportModule('counting-callbacks.mjs')),
      onError: (error) => errors.push(error.message),
      onIterationStats: ({ iteration }) => {
        iterations.push(iteration);
        if (iteration === 2) throw new Error('of statistics');
      },
    });
    managers.push(manager);
    await manager.ready;
    const read = () => {
      try {
        return JSON.parse(readFileSync(process.env.SKEIN_TEST_SEEN!, 'utf8'));
      } catch {
        return null;
      }
    };
    await expect.poll(read).not.toBeNull();
    await manager.shutdown();
    const seen = read();
    const of = (id: number) => seen.responses.filter((response: { id: number }) => response.id === id);
    expect(of(1).flatMap((r: { tokens: number[] }) => r.tokens)).toEqual(
      runAlone(makeRequest(1n, [5, 1], 6)).tokens,
    );
    expect(of(2)).toHaveLength(6);
    expect(of(3).at(-1)).toMatchObject({ final: true, reason: 5, error: '' });
    expect(seen.stats).toBeGreaterThanOrEqual(5);
    // Here, in the host's thread: one call for each iteration in its order, also after one that threw.
    expect(iterations.length).toBeGreaterThanOrEqual(seen.stats);
    expect(iterations).toEqual(iterations.map((_, index) => index + 1));
    expect(errors).toContain('The callback onIterationStats failed: of statistics');
    for (const reason of ['not yet', 'send', 'poll', 'stats']) {
      expect(errors.some((message) => message.endsWith(`: ${reason}`))).toBe(true);
    }
    rmSync(folder, { recursive: true });
  });

  it('rejects ready where a callback is missing', async () => {
    const callbackModule = pathToFileURL(supportModule('no-callbacks.mjs'));
    const manager = new GptManager({ ...fakeEngine(), callbackModule });
    managers.push(manager);
    await expect(manager.ready).rejects.toThrow(/does not export the function sendResponse/);
  });
});

describe('options', () => {
  const callbacks = { getInferenceRequests: () => [], sendResponse: () => {} };
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['enginePath', { enginePath: '' }, /enginePath is missing/],
    ['modelType', { modelType: 'V2' }, /modelType is V2/],
    [
      'chunked V1',
      { modelType: 'V1', optionalParams: { enableChunkedContext: true } },
      /enableChunkedContext is refused: V1/,
    ],
    ['maxBeamWidth', { maxBeamWidth: 0 }, /maxBeamWidth is 0/],
    ['schedulerPolicy', { schedulerPolicy: 'FAIR' }, /schedulerPolicy is FAIR/],
    ['sendResponse', { sendResponse: undefined }, /sendResponse is missing/],
    ['both kinds', { callbackModule: 'file:///x.mjs' }, /functions or a module, not both/],
    [
      'a stop signal beside a module',
      {
        callbackModule: 'file:///x.mjs',
        getInferenceRequests: undefined,
        sendResponse: undefined,
        pollStopSignals: () => new Set(),
      },
      /pollStopSignals is given together with callbackModule/,
    ],
    [
      'a window',
      { optionalParams: { kvCacheConfig: { maxAttentionWindow: 0 } } },
      /kvCacheConfig.maxAttentionWindow is 0/,
    ],
    [
      'sinks as long as the window',
      { optionalParams: { kvCacheConfig: { maxAttentionWindow: 8, sinkTokenLength: 8 } } },
      /kvCacheConfig.sinkTokenLength is 8/,
    ],
    [
      'V1 with reuse',
      { modelType: 'V1', optionalParams: { kvCacheConfig: { enableBlockReuse: true } } },
      /enableBlockReuse is refused: V1/,
    ],
    ['a form of statistics', { optionalParams: { statsFormat: 'csv' } }, /statsFormat is csv/],
    ['the fraction', { optionalParams: { kvCacheConfig: { freeGpuMemoryFraction: 2 } } }, /Fraction is 2/],
    ['a count', { optionalParams: { maxNumSequences: 1.5 } }, /maxNumSequences is 1.5/],
  ])('refuse a wrong %s at once', (_, overrides, message) => {
    const options = { ...fakeEngine(), ...callbacks, ...overrides } as GptManagerOptions;
    expect(() => new GptManager(options)).toThrow(message);
  });
});
