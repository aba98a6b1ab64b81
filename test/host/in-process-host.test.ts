import {
  HostClosedError,
  InProcessHost,
  QueueFullError,
  RequestError,
  type TokenPiece,
  type TokenStream,
} from 'skein';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';

const hosts: InProcessHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
});

function start(
  engine = '',
  options: Partial<ConstructorParameters<typeof InProcessHost>[0]> = {},
): InProcessHost {
  const host = new InProcessHost({ ...fakeEngine(engine), ...options });
  hosts.push(host);
  return host;
}

let shared: InProcessHost | null = null;
afterAll(() => shared?.close({ abort: true }));

/** The host of all tests that want no options: a worker takes longer to start than they do. */
function plain(): InProcessHost {
  shared ??= new InProcessHost(fakeEngine());
  return shared;
}

async function collect(stream: TokenStream): Promise<{ tokens: number[]; pieces: TokenPiece[] }> {
  const pieces: TokenPiece[] = [];
  for await (const piece of stream) pieces.push(piece);
  return { tokens: pieces.flatMap((piece) => [...piece.tokens]), pieces };
}

const greedy = { temperature: 0 };
/** Token 66 ends the worker. */
const deadly = { enginePath: 'fake:?dieToken=66&stepMs=1', onError: () => {} };
const alone = (prompt: number[], count: number) => runAlone(makeRequest(1n, prompt, count)).tokens;

describe('InProcessHost', () => {
  it('streams each of many requests the tokens that it gets alone', async () => {
    const host = plain();
    const prompts = Array.from({ length: 20 }, (_, index) => [index, 5]);
    const results = await Promise.all(
      prompts.map((promptTokens) => collect(host.submit({ promptTokens, maxNewTokens: 30, ...greedy }))),
    );
    for (const [index, prompt] of prompts.entries()) {
      expect(results[index]!.tokens).toEqual(alone(prompt, 30));
      const reasons = results[index]!.pieces.map((piece) => piece.finishReason);
      expect(reasons.at(-1)).toBe('length');
      expect(reasons.slice(0, -1).every((reason) => reason === null)).toBe(true);
    }
    expect([host.queued, host.running]).toEqual([0, 0]);
  });

  it('says with the last piece when the request ran, from its submission on', async () => {
    const host = start('', { ...fakeEngine('stepMs=5', { maxNumSequences: 1 }) });
    const request = { promptTokens: [1], maxNewTokens: 4, ...greedy };
    const [first, second] = await Promise.all([
      collect(host.submit(request)),
      collect(host.submit({ ...request, maxNewTokens: 1 })),
    ]);
    expect(first.pieces.slice(0, -1).every(({ timing }) => timing === undefined)).toBe(true);
    const { timing } = first.pieces.at(-1)!;
    expect(timing!.numIterations).toBe(4);
    expect(timing!.firstScheduledMs).toBeGreaterThanOrEqual(0);
    expect(timing!.firstTokenMs).toBeGreaterThan(timing!.firstScheduledMs!);
    expect(timing!.lastTokenMs).toBeGreaterThan(timing!.firstTokenMs!);
    // The second waited in the host's queue for the first to end.
    const waited = second.pieces.at(-1)!.timing!;
    expect(waited.firstScheduledMs).toBeGreaterThan(timing!.firstTokenMs!);
    expect(waited.lastTokenMs).toBe(waited.firstTokenMs);
  });

  it('gives one piece without streaming, and log-probs where asked', async () => {
    const host = plain();
    const request = {
      promptTokens: [1, 2],
      maxNewTokens: 8,
      returnLogProbs: true,
      topLogProbs: 3,
      ...greedy,
    };
    const { pieces } = await collect(host.submit({ ...request, streaming: false }));
    expect(pieces).toHaveLength(1);
    expect([...pieces[0]!.tokens]).toEqual(alone([1, 2], 8));
    expect(pieces[0]!.logProbs).toHaveLength(8);
    expect(pieces[0]!.topTokens).toHaveLength(24);
    const streamed = await collect(host.submit(request));
    expect(streamed.pieces.flatMap((piece) => [...piece.topLogProbs!])).toEqual([...pieces[0]!.topLogProbs!]);
  });

  it('puts together what a slow consumer has not taken', async () => {
    const host = plain();
    const slow = host.submit({ promptTokens: [1], maxNewTokens: 40, ...greedy });
    await collect(host.submit({ promptTokens: [2], maxNewTokens: 60, ...greedy }));
    const { tokens, pieces } = await collect(slow);
    expect(tokens).toEqual(alone([1], 40));
    expect(pieces).toHaveLength(1);
  });

  it('ends before any of several end tokens and after stop words', async () => {
    const host = plain();
    const full = alone([9], 20);
    const first = full.indexOf(full[6]!);
    for (const endTokenIds of [[full[6]!], [99999 % 100, full[6]!]]) {
      const end = Math.min(...endTokenIds.map((token) => full.indexOf(token)).filter((place) => place >= 0));
      const request = { promptTokens: [9], maxNewTokens: 20, endTokenIds, returnLogProbs: true, ...greedy };
      const { tokens, pieces } = await collect(host.submit(request));
      expect(tokens).toEqual(full.slice(0, end));
      expect(pieces.flatMap((piece) => [...piece.logProbs!])).toHaveLength(end);
      expect(pieces.at(-1)!.finishReason).toBe('stop');
    }
    const stopWords = [full.slice(first, first + 2)];
    const stopped = await collect(host.submit({ promptTokens: [9], maxNewTokens: 20, stopWords, ...greedy }));
    expect(stopped.tokens.slice(-2)).toEqual(stopWords[0]);
    expect(stopped.pieces.at(-1)!.finishReason).toBe('stop');
  });

  it('draws none of several end tokens below minLength, nor a stop word of one token', async () => {
    const host = plain();
    const [first, second, third, fourth] = alone([9], 20) as [number, number, number, number];
    const request = { promptTokens: [9], maxNewTokens: 20, endTokenIds: [first, second, third], ...greedy };
    expect((await collect(host.submit(request))).tokens).toEqual([]);
    const stopWords = [[fourth]];
    const { tokens, pieces } = await collect(host.submit({ ...request, stopWords, minLength: 5 }));
    expect(tokens.length).toBeGreaterThanOrEqual(5);
    for (const token of [first, second, third, fourth]) expect(tokens.slice(0, 5)).not.toContain(token);
    expect(pieces.at(-1)!.finishReason).not.toBeNull();
  });

  it('cancels by signal, by cancel, and by leaving the loop, whether queued or running', async () => {
    const host = start('stepMs=4', {
      optionalParams: { ...fakeEngine().optionalParams, maxNumSequences: 1 },
    });
    await host.ready;
    const controller = new AbortController();
    const running = host.submit({ promptTokens: [1], maxNewTokens: 250, signal: controller.signal });
    const queued = host.submit({ promptTokens: [2], maxNewTokens: 250 });
    const left = host.submit({ promptTokens: [3], maxNewTokens: 250 });
    expect([host.running, host.queued]).toEqual([1, 2]);
    host.cancel(queued.requestId);
    expect(host.queued).toBe(1);
    expect((await collect(queued)).pieces.at(-1)!.finishReason).toBe('cancelled');
    controller.abort();
    expect((await collect(running)).pieces.at(-1)!.finishReason).toBe('cancelled');
    for await (const piece of left) {
      expect(piece.tokens.length).toBeGreaterThan(0);
      break;
    }
    await expect.poll(() => host.running).toBe(0);
    const after = await collect(host.submit({ promptTokens: [4], maxNewTokens: 5, ...greedy }));
    expect(after.tokens).toEqual(alone([4], 5));
    const aborted = host.submit({ promptTokens: [4], maxNewTokens: 5, signal: AbortSignal.abort() });
    expect((await collect(aborted)).pieces).toMatchObject([{ finishReason: 'cancelled' }]);
  });

  it('refuses at once what the queue cannot hold', async () => {
    const host = start('stepMs=1', { maxQueueSize: 2 });
    await host.ready;
    const request = { promptTokens: [1], maxNewTokens: 250 };
    for (let i = 0; i < 6; i++) host.submit(request);
    expect([host.running, host.queued]).toEqual([4, 2]);
    expect(() => host.submit(request)).toThrow(QueueFullError);
  });

  it('runs what waits in the order of priority', async () => {
    const host = start('', { optionalParams: { ...fakeEngine().optionalParams, maxNumSequences: 1 } });
    const order: number[] = [];
    await Promise.all(
      [0.1, 0.9, 0.5, 0.9].map(async (priority, index) => {
        await collect(host.submit({ promptTokens: [1], maxNewTokens: 3, priority }));
        order.push(index);
      }),
    );
    expect(order).toEqual([1, 3, 2, 0]);
  });

  it('ends a request at its time limit, queued or running', async () => {
    const host = start('stepMs=5', {
      optionalParams: { ...fakeEngine().optionalParams, maxNumSequences: 1 },
    });
    await host.ready;
    const running = collect(host.submit({ promptTokens: [1], maxNewTokens: 250, timeLimitMs: 60 }));
    const queued = collect(host.submit({ promptTokens: [2], maxNewTokens: 250, timeLimitMs: 10 }));
    expect((await queued).pieces.at(-1)!.finishReason).toBe('timeout');
    expect((await running).pieces.at(-1)!.finishReason).toBe('timeout');
  });

  it.each([
    ['a token outside the vocabulary', { promptTokens: [100], maxNewTokens: 1 }, /0 to 99/],
    ['a fraction of a token', { promptTokens: [1.5], maxNewTokens: 1 }, /1.5 at place 0/],
    ['no new tokens', { promptTokens: [1], maxNewTokens: 0 }, /maxNewTokens is 0/],
    ['a temperature', { promptTokens: [1], maxNewTokens: 1, temperature: -1 }, /temperature is -1/],
    ['too much', { promptTokens: [1], maxNewTokens: 9999 }, /maxSeqLen = 256/],
  ])('rejects the stream of a request with %s', async (_, request, message) => {
    const host = plain();
    const error = await collect(host.submit(request)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(RequestError);
    expect(error).toMatchObject({ isInvalid: true, message: expect.stringMatching(message) });
  });

  it.each([
    [{ promptTokens: null }, 'promptTokens is null; an array or Int32Array of token ids is expected.'],
    [
      { promptTokens: undefined },
      'promptTokens is missing; an array or Int32Array of token ids is expected.',
    ],
    [{ promptTokens: 'abc' }, 'promptTokens is a text; an array or Int32Array of token ids is expected.'],
    [{ signal: Number.NaN }, 'signal is a number; an AbortSignal is expected.'],
    [{ signal: '' }, 'signal is a text; an AbortSignal is expected.'],
    [{ signal: {} }, 'signal is an object; an AbortSignal is expected.'],
    [{ logitBias: 5 }, 'logitBias is a number; a Map of token ids and numbers is expected.'],
    [{ logitBias: { 5: 1 } }, 'logitBias is an object; a Map of token ids and numbers is expected.'],
    [{ badWords: 5 }, 'badWords is a number; an array of arrays of token ids is expected.'],
    [{ stopWords: [5] }, 'stopWords is an array; an array of arrays of token ids is expected.'],
    [{ stopWords: { length: 1e9 } }, 'stopWords is an object; an array of arrays of token ids is expected.'],
    [{ promptEmbeddings: -1 }, 'promptEmbeddings is a number; an array of Float32Arrays is expected.'],
    [{ embeddingBias: [1] }, 'embeddingBias is an array; a Float32Array is expected.'],
    [{ retention: 'x' }, 'retention is a text; an object is expected.'],
    [{ beams: 2 }, 'beams is a number; an object { width, lengthPenalty, earlyStopping } is expected.'],
    [
      { guide: { type: 'regex' } },
      'guide is an object; an object of two texts, { type, guide }, is expected.',
    ],
    [{ streaming: 1 }, 'streaming is a number; true or false is expected.'],
    [{ seed: 5 }, 'seed is a number; a bigint, such as 1n, or null is expected.'],
    [{ label: null }, 'label is null; a text is expected.'],
    [{ temperature: [] }, /^temperature is /],
    [{ topP: true }, /^topP is true/],
    [{ cacheSalt: 1 }, /^cacheSalt is 1; it must be a bigint/],
    [{ maxNewToken: 1 }, 'maxNewToken is not a field of a request; did you mean maxNewTokens?'],
  ])('says which field of %o is of a wrong kind, and goes on', async (fields, message) => {
    const host = plain();
    const ask = { promptTokens: [1], maxNewTokens: 2, ...greedy };
    const refused = collect(host.submit({ ...ask, ...fields } as never)).catch((reason: unknown) => reason);
    const right = collect(host.submit(ask));
    expect(await refused).toMatchObject({
      name: 'RequestError',
      isInvalid: true,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    });
    expect((await right).tokens).toEqual(alone([1], 2));
    expect(host.running + host.queued).toBe(0);
  });

  it('reads each field of a request once, and its own alone', async () => {
    const host = plain();
    let reads = 0;
    const changing = {
      promptTokens: [1],
      maxNewTokens: 2,
      ...greedy,
      get numSequences() {
        return ++reads;
      },
    };
    expect((await collect(host.submit(changing))).tokens).toEqual(alone([1], 2));
    expect(reads).toBe(1);
    const inherited = Object.create({ promptTokens: [1], maxNewTokens: 2, stopWords: 5 }) as never;
    const throwing = {
      maxNewTokens: 2,
      get promptTokens(): number[] {
        throw new TypeError('not now');
      },
    };
    for (const [given, message] of [
      [inherited, 'promptTokens is missing; an array or Int32Array of token ids is expected.'],
      [throwing, 'A field of the request cannot be read: not now'],
    ] as const) {
      const error = await collect(host.submit(given)).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ isInvalid: true, message });
    }
  });

  it('refuses what is no request', async () => {
    const error = await collect(plain().submit(null as never)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ isInvalid: true, message: 'A request is an object, not null.' });
  });

  it('lets all that was taken end when it closes, and takes no more', async () => {
    const host = start();
    const results = Array.from({ length: 10 }, (_, index) =>
      collect(host.submit({ promptTokens: [index], maxNewTokens: 30, ...greedy })),
    );
    const closed = host.close();
    expect(() => host.submit({ promptTokens: [1], maxNewTokens: 1 })).toThrow(HostClosedError);
    await closed;
    for (const [index, result] of results.entries()) {
      expect((await result).tokens).toEqual(alone([index], 30));
    }
    expect(host.state).toBe('stopped');
    await host.close();
  });

  it('cancels what is left after the time that a close gives', async () => {
    const host = start('stepMs=10');
    await host.ready;
    const results = Array.from({ length: 6 }, () =>
      collect(host.submit({ promptTokens: [1], maxNewTokens: 250 })),
    );
    await host.close({ timeoutMs: 20 });
    for (const result of results) expect((await result).pieces.at(-1)!.finishReason).toBe('cancelled');
  });

  it('takes requests up to its limit while no engine runs; they can be cancelled and time out', async () => {
    const host = start('', {
      ...fakeEngine('', { workerRestart: { delayMs: 86_400_000, maxDelayMs: 86_400_000 } }),
      ...deadly,
      maxQueueSize: 3,
    });
    const fatal = host.submit({ promptTokens: [66], maxNewTokens: 1 });
    await expect.poll(() => host.lost).toBe(1);
    host.cancel(fatal.requestId);
    expect(host.state).toBe('restarting');
    const request = { promptTokens: [1], maxNewTokens: 4 };
    const cancelled = host.submit(request);
    const late = host.submit({ ...request, timeLimitMs: 20 });
    const last = host.submit(request);
    expect(() => host.submit(request)).toThrow(QueueFullError);
    host.cancel(cancelled.requestId);
    expect((await collect(cancelled)).pieces).toMatchObject([{ finishReason: 'cancelled' }]);
    expect((await collect(late)).pieces).toMatchObject([{ finishReason: 'timeout' }]);
    expect(host.queued).toBe(1);
    await host.close({ timeoutMs: 0 });
    expect((await collect(last)).pieces).toMatchObject([{ finishReason: 'cancelled' }]);
    expect(host.state).toBe('stopped');
  });

  it('fails what waits where no other engine comes', async () => {
    const host = start('', { ...fakeEngine('', { workerRestart: false }), ...deadly });
    await host.ready;
    const fatal = Array.from({ length: 4 }, () =>
      collect(host.submit({ promptTokens: [66], maxNewTokens: 1 })),
    );
    const waiting = collect(host.submit({ promptTokens: [1], maxNewTokens: 1 }));
    const ends = await Promise.allSettled([...fatal, waiting]);
    expect(ends.at(-1)).toMatchObject({ status: 'rejected', reason: expect.any(HostClosedError) });
    expect(host.state).toBe('failed');
    expect(() => host.submit({ promptTokens: [1], maxNewTokens: 1 })).toThrow(HostClosedError);
  });

  it('ends the engine in the middle of its iteration where a close may not wait for it', async () => {
    const host = start('', fakeEngine('stepMs=60000'));
    await host.ready;
    const running = collect(host.submit({ promptTokens: [1], maxNewTokens: 4 }));
    await host.close({ abort: true, terminateAfterMs: 10 });
    expect((await running).pieces).toMatchObject([{ finishReason: 'cancelled' }]);
    expect(host.state).toBe('stopped');
  });

  it('reports the blocks that are held after a cancellation, in the iteration that processed it', async () => {
    const held: number[] = [];
    const host = start('stepMs=20', { onIterationStats: (stats) => held.push(stats.heldBlocks) });
    const streams = [1, 2, 3].map((token) => host.submit({ promptTokens: [token], maxNewTokens: 200 }));
    const ends = streams.map(collect);
    await expect.poll(() => held.at(-1)).toBeGreaterThanOrEqual(3);
    for (const { requestId } of streams) host.cancel(requestId);
    for (const end of ends) expect((await end).pieces.at(-1)!.finishReason).toBe('cancelled');
    await expect.poll(() => held.at(-1)).toBe(0);
  });

  it('reports the engine and its statistics', async () => {
    const json: string[] = [];
    let seen = 0;
    const host = start('', { onStats: (stats) => json.push(stats), onIterationStats: () => seen++ });
    expect(await host.ready).toMatchObject({ maxSeqLen: 256, vocabSize: 100 });
    await collect(host.submit({ promptTokens: [1], maxNewTokens: 5 }));
    expect(json).toHaveLength(5);
    expect(seen).toBe(5);
  });
});
