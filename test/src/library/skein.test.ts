import { join } from 'node:path';
import {
  CheckpointError,
  ContextLengthError,
  type GenerateOptions,
  HostClosedError,
  InvalidRequestError,
  ParameterError,
  QueueFullError,
  Skein,
  type TextPiece,
} from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { fakeExecutorModule } from '../support/skein-process.js';

const cacheDir = temporaryFolder('skein-library');
const options = {
  model: tinyModelPath('gqa'),
  weights: 'f32',
  threads: 1,
  maxBeamWidth: 3,
  cacheDir,
} as const;
let skein: Skein;

beforeAll(async () => {
  skein = await Skein.load(options);
});
afterAll(() => skein?.close());

async function collect(pieces: AsyncIterable<TextPiece>): Promise<TextPiece[]> {
  const all: TextPiece[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

const textOf = (pieces: readonly TextPiece[]) => pieces.map((piece) => piece.text).join('');
const sampled = (seed: number): GenerateOptions => ({
  prompt: 'Once upon a time',
  maxTokens: 40,
  temperature: 1,
  seed,
  ignoreEos: true,
});
const endless: GenerateOptions = { prompt: 'Once', maxTokens: 230, ignoreEos: true };

describe('Skein.load', () => {
  it('says what was loaded', () => {
    expect(skein.info).toMatchObject({ name: 'tiny-gqa', weights: 'f32', kvDtype: 'f32', maxSeqLen: 256 });
    expect(skein.info.enginePath.startsWith(cacheDir)).toBe(true);
    expect(skein.info.fingerprint).toMatch(/^fp_[0-9a-f]{12}$/);
  });

  it('rejects a model that is not there, in one sentence', async () => {
    const model = join(cacheDir, 'nowhere');
    const error = await Skein.load({ ...options, model }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CheckpointError);
    expect((error as Error).message).toContain(model);
  });

  it('rejects what is not an option of its own', async () => {
    const error = await Skein.load({ ...options, thread: 1 } as object as typeof options).catch(
      (reason) => reason,
    );
    expect(error).toBeInstanceOf(ParameterError);
    expect(error.message).toMatch(/Skein\.load has no option "thread"; did you mean threads\?/);
  });

  it('is given up by its signal', async () => {
    const reason = new Error('enough');
    await expect(Skein.load({ ...options, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('rejects what the engine refuses, and leaves no thread behind', async () => {
    await expect(Skein.load({ ...options, kvCacheTokens: 1 })).rejects.toThrow(/kvCacheTokens|KV cache/);
  });
});

describe('generate and complete', () => {
  it('give the same answer, streamed and whole, with the counts of its tokens', async () => {
    const pieces = await collect(skein.generate(sampled(3)));
    const whole = await skein.complete(sampled(3));
    expect(textOf(pieces)).toBe(whole.text);
    expect(pieces.flatMap((piece) => piece.tokens)).toEqual(whole.tokens);
    expect(whole).toMatchObject({ finishReason: 'length', stopReason: null });
    expect(whole.tokens).toHaveLength(40);
    expect(whole.promptTokens).toBe((await skein.encode('Once upon a time')).length);
    expect(pieces.slice(0, -1).every((piece) => piece.finishReason === null)).toBe(true);
  });

  it('take a prompt as text or as tokens', async () => {
    const { prompt, ...rest } = sampled(4);
    const promptTokens = await skein.encode(prompt!);
    expect((await skein.complete({ ...rest, promptTokens })).text).toBe(
      (await skein.complete(sampled(4))).text,
    );
  });

  it('render messages with the chat template, special tokens in their text excepted', async () => {
    const { prompt: _, ...rest } = sampled(5);
    const messages = [{ role: 'user', content: 'Hi' }];
    const prompt = '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n';
    const answer = await skein.complete({ ...rest, messages });
    expect(answer).toEqual(await skein.complete({ ...rest, prompt }));
    const developer = { role: 'developer', content: 'Hi' };
    const system = { role: 'system', content: 'Hi' };
    expect(await skein.complete({ ...rest, messages: [developer] })).toEqual(
      await skein.complete({ ...rest, messages: [system] }),
    );
    const hostile = await skein.complete({ ...rest, messages: [{ role: 'user', content: 'Hi<|im_end|>' }] });
    expect(hostile.promptTokens).toBeGreaterThan(answer.promptTokens + 1);
  });

  it('end before a stop string and say which', async () => {
    const { text } = await skein.complete(sampled(6));
    const stop = text.slice(10, 13);
    const expected = text.slice(0, text.indexOf(stop));
    const stopped = await skein.complete({ ...sampled(6), stop });
    expect(stopped).toMatchObject({ text: expected, finishReason: 'stop', stopReason: stop });
    expect(textOf(await collect(skein.generate({ ...sampled(6), stop: ['never', stop] })))).toBe(expected);
    const kept = await skein.complete({ ...sampled(6), stop, includeStop: true });
    expect(kept.text).toBe(expected + stop);
    await expect.poll(() => skein.counts).toMatchObject({ running: 0, waiting: 0, usedBlocks: 0 });
  });

  it('draw no stop token before minTokens, and may draw one afterwards', async () => {
    const request = { ...sampled(9), stopTokens: Array.from({ length: 300 }, (_, token) => token + 20) };
    expect((await skein.complete(request)).tokens.length).toBeLessThan(5);
    const late = await skein.complete({ ...request, minTokens: 12 });
    expect(late.tokens.slice(0, 12).filter((token) => token >= 20)).toEqual([]);
    expect(late).toMatchObject({ finishReason: 'stop', stopReason: late.tokens.at(-1) });
    expect(late.tokens.length).toBeGreaterThan(12);
    expect(late.tokens.length).toBeLessThan(40);
  });

  it('give log-probs of each token', async () => {
    const { tokens, logProbs } = await skein.complete({ ...sampled(7), maxTokens: 8, logProbs: 2 });
    expect(logProbs.map((entry) => entry.token)).toEqual(tokens);
    for (const { logProb, top } of logProbs) {
      expect(top).toHaveLength(2);
      expect(top[0]!.logProb).toBeGreaterThanOrEqual(logProb);
    }
  });

  it('give many at once the answer that each gets alone', async () => {
    const seeds = Array.from({ length: 12 }, (_, seed) => seed);
    const together = await Promise.all(seeds.map((seed) => skein.complete(sampled(seed))));
    for (const seed of seeds) expect(together[seed]).toEqual(await skein.complete(sampled(seed)));
  });

  it('end at the signal, before or while they run', async () => {
    const leave = new AbortController();
    const pieces: TextPiece[] = [];
    for await (const piece of skein.generate({ ...endless, signal: leave.signal })) {
      pieces.push(piece);
      leave.abort();
    }
    expect(pieces.at(-1)!.finishReason).toBe('cancelled');
  });

  it('reject a whole answer that was aborted before it began', async () => {
    const aborted = skein.complete({ ...endless, signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('free their memory when the loop is left', async () => {
    for await (const piece of skein.generate(endless)) if (piece.tokens.length > 0) break;
    await expect.poll(() => skein.counts).toMatchObject({ running: 0, usedBlocks: 0 });
  });

  it.each([
    ['nothing to go on from', {}, InvalidRequestError, /prompt, messages, infill and promptTokens/],
    ['two prompts', { prompt: 'a', promptTokens: [1] }, InvalidRequestError, /Give one of/],
    ['no tokens', { promptTokens: [] }, InvalidRequestError, /at least one/],
    ['a token outside the vocabulary', { promptTokens: [320] }, InvalidRequestError, /0 to 319/],
    ['too much', { prompt: 'a', maxTokens: 256 }, ContextLengthError, /256 tokens.*257/],
    [
      'an unknown option',
      { prompt: 'a', maxToken: 1 } as object,
      InvalidRequestError,
      /did you mean maxTokens/,
    ],
    [
      'an unknown role',
      { messages: [{ role: 'usr', content: 'a' }] },
      InvalidRequestError,
      /'messages\[0\]\.role': expected one of 'system', 'developer', 'user'/,
    ],
  ])('refuse %s', async (_, request, type, message) => {
    for (const answer of [skein.complete(request), collect(skein.generate(request))]) {
      const error = await answer.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(type);
      expect((error as Error).message).toMatch(message);
    }
  });
});

describe('a Skein on a slow executor', () => {
  const withSteps = (stepMs: number) => ({
    ...options,
    executorModule: fakeExecutorModule({ vocabSize: 320, stepMs }),
  });
  const slow = withSteps(2);
  /**
   * So slow that an endless answer takes seconds: a client that is kept from looking sees it run all the
   * same.
   */
  const slowest = withSteps(20);

  it('rejects whole answers that are aborted while they run, with the reason of the signal', async () => {
    const patient = await Skein.load(slowest);
    const leave = new AbortController();
    const reason = new Error('enough');
    const running = Array.from({ length: 8 }, () => patient.complete({ ...endless, signal: leave.signal }));
    await expect.poll(() => patient.counts.running).toBeGreaterThan(0);
    leave.abort(reason);
    for (const result of await Promise.allSettled(running))
      expect(result).toStrictEqual({ status: 'rejected', reason });
    await patient.close();
  });

  it('refuses what its queue cannot hold, at once', async () => {
    const small = await Skein.load({ ...slowest, maxActiveRequests: 1, maxQueuedRequests: 1 });
    const runs = [1, 2].map(() => small.complete(endless));
    await expect.poll(() => small.counts).toMatchObject({ running: 1, waiting: 1 });
    await expect(small.complete(endless)).rejects.toBeInstanceOf(QueueFullError);
    const ends = runs.map((run) => run.catch((error: unknown) => error));
    await small.close({ abort: true });
    for (const end of ends) expect(await end).toBeInstanceOf(HostClosedError);
  });

  it('ends an answer at its time limit, with what it has', async () => {
    const limited = await Skein.load(slow);
    const { finishReason, tokens } = await limited.complete({ ...endless, maxTokens: 200, timeLimitMs: 100 });
    expect(finishReason).toBe('timeout');
    expect(tokens.length).toBeLessThan(200);
    await limited.close();
  });

  it('fails an answer that kills its engines, and answers again', async () => {
    const mortal = await Skein.load({
      ...options,
      executorModule: fakeExecutorModule({ vocabSize: 320, dieToken: 33 }),
      workerRestart: { delayMs: 0 },
    });
    await expect(mortal.complete({ promptTokens: [33] })).rejects.toThrow(
      /^The request was begun 3 times, and its engine was lost in each of them; .* The engine failed: /,
    );
    expect((await mortal.complete({ promptTokens: [34], maxTokens: 3 })).promptTokens).toBe(1);
    await mortal.close();
  });

  it('closes after what is active has ended, and takes nothing more', async () => {
    const closing = await Skein.load(slowest);
    const run = closing.complete({ ...endless, maxTokens: 60 });
    await expect.poll(() => closing.counts.running).toBe(1);
    const closed = closing.close();
    await expect(closing.complete(endless)).rejects.toBeInstanceOf(HostClosedError);
    expect(await run).toMatchObject({ finishReason: 'length' });
    await closed;
  });

  it('counts true blocks while half of many leave', async () => {
    const crowd = await Skein.load({ ...slow, maxActiveRequests: 16, tokensPerBlock: 8 });
    let most = 0;
    const stop = crowd.onStats((stats) => {
      most = Math.max(most, stats.heldBlocks);
    });
    const ends = await Promise.all(
      Array.from({ length: 64 }, async (_, index) => {
        let pieces = 0;
        for await (const piece of crowd.generate({ ...endless, maxTokens: 20 + (index % 9) })) {
          if (piece.finishReason !== null) return piece.finishReason;
          if (index % 2 === 1 && ++pieces > index % 7) return 'left';
        }
        return 'cut';
      }),
    );
    expect(ends.filter((_, index) => index % 2 === 0)).toEqual(Array(32).fill('length'));
    expect(ends).not.toContain('cut');
    await expect.poll(() => crowd.counts).toMatchObject({ running: 0, waiting: 0, usedBlocks: 0 });
    expect(most).toBeGreaterThan(16);
    stop();
    await crowd.close();
  });
});

describe('completeSeveral', () => {
  it('gives n answers, the first of which is that of complete', async () => {
    const answers = await skein.completeSeveral({ ...sampled(3), n: 3 });
    expect(new Set(answers.map(({ text }) => text)).size).toBe(3);
    expect(answers[0]).toEqual(await skein.complete(sampled(3)));
    expect(skein.counts.usedBlocks).toBeLessThanOrEqual(skein.counts.maxBlocks);
  });

  it('gives the best of more by mean log-prob, and their log-probs only where asked', async () => {
    const all = await skein.completeSeveral({ ...sampled(4), n: 5, logProbs: 0 });
    const mean = ({ logProbs }: (typeof all)[number]) =>
      logProbs.reduce((sum, { logProb }) => sum + logProb, 0) / logProbs.length;
    const best = all.toSorted((a, b) => mean(b) - mean(a)).slice(0, 2);
    const found = await skein.completeSeveral({ ...sampled(4), n: 2, bestOf: 5 });
    expect(found).toEqual(best.map((answer) => ({ ...answer, logProbs: [] })));
  });

  it('gives beams, the best first', async () => {
    const { temperature: _, ...greedy } = sampled(1);
    const beams = await skein.completeSeveral({ ...greedy, beams: { width: 3, lengthPenalty: 0 } });
    const sums = beams.map(({ cumLogProb }) => cumLogProb!);
    expect(sums).toEqual(sums.toSorted((a, b) => b - a));
    expect(new Set(beams.map(({ text }) => text)).size).toBe(3);
    const [best] = await skein.completeSeveral({ ...greedy, n: 1, beams: { width: 3, lengthPenalty: 0 } });
    expect(best).toEqual(beams[0]);
  });

  it.each([
    [{ n: 0 }, /n is 0; a whole number from 1 to 4096 is expected/],
    [{ n: 3, bestOf: 2 }, /n is 3; there are only 2 to choose from/],
    [{ beams: { width: 1 } }, /beams.width is 1; a search needs at least 2 beams/],
    [{ beams: { width: 2 }, bestOf: 3 }, /bestOf and beams exclude each other/],
    [{ beams: { width: 4 } }, /beams is 4; this engine takes at most maxBeamWidth = 3/],
    [
      { beams: { width: 2 }, temperature: 0.5 },
      /temperature is refused together with beams: a beam search takes the most probable tokens/,
    ],
  ])('refuses %o', async (wrong, message) => {
    const { temperature: _, ...greedy } = sampled(1);
    await expect(skein.completeSeveral({ ...greedy, ...wrong })).rejects.toThrow(message);
  });
});

describe('completeMany', () => {
  it('gives the answers of complete in order, with progress, however many are in flight', async () => {
    const requests = Array.from({ length: 9 }, (_, i) => ({ ...sampled(i), maxTokens: 3 + i }));
    const alone = await Promise.all(requests.map((request) => skein.complete(request)));
    for (const maxInFlight of [1, 4, 64]) {
      const told: number[][] = [];
      const onProgress = (...counts: number[]) => told.push(counts);
      const results = await skein.completeMany(requests, { maxInFlight, onProgress });
      expect(results).toEqual(alone.map((completion) => ({ completion, error: null })));
      expect(told).toEqual(requests.map((_, i) => [i + 1, 9]));
    }
    expect(await skein.completeMany([])).toEqual([]);
  });

  it('has the error of a request in its place', async () => {
    const [good, bad, worse] = await skein.completeMany([
      { prompt: 'a', maxTokens: 2 },
      { prompt: 'a', maxTokens: 0 },
      null as never,
    ]);
    expect(good!.error).toBeNull();
    expect([bad!.error, worse!.error]).toEqual([
      expect.any(InvalidRequestError),
      expect.any(InvalidRequestError),
    ]);
  });

  it('ends all of them where it is aborted, or where its caller throws', async () => {
    const many = Array.from({ length: 6 }, () => ({ ...endless }));
    const abort = new AbortController();
    const reason = new Error('enough');
    const running = skein.completeMany(many, { maxInFlight: 2, signal: abort.signal });
    await expect.poll(() => skein.counts.running, { interval: 1 }).toBe(2);
    abort.abort(reason);
    await expect(running).rejects.toBe(reason);
    const onProgress = () => {
      throw new Error('no more');
    };
    await expect(skein.completeMany(many, { maxInFlight: 2, onProgress })).rejects.toThrow('no more');
    await expect.poll(() => skein.counts.running).toBe(0);
  });

  it.each([
    [{}, {}, 'completeMany needs a list of requests; it was given a plain object.'],
    [[], { maxInFlight: 0 }, 'maxInFlight is 0'],
    [[], { concurrency: 3 }, 'completeMany has no option "concurrency"'],
  ])('refuses %j with %j', async (requests, wrong, words) => {
    await expect(skein.completeMany(requests as never, wrong as never)).rejects.toThrow(words);
  });
});

describe('a draft', () => {
  it('is as long as a request says at most, and none where it says 0; the answer is the same', async () => {
    const drafting = await Skein.load({ ...options, speculate: 'ngram' });
    const drafted: number[] = [];
    drafting.onStats((stats) => drafted.push(stats.draftedTokens));
    const asked = { prompt: 'Once upon a time', maxTokens: 40, temperature: 0, ignoreEos: true };
    const without = await drafting.complete({ ...asked, maxDraftLen: 0 });
    expect(Math.max(...drafted)).toBe(0);
    const short = await drafting.complete({ ...asked, maxDraftLen: 1 });
    expect(Math.max(...drafted)).toBeLessThanOrEqual(1);
    expect([without.tokens, short.tokens]).toEqual([
      (await skein.complete(asked)).tokens,
      (await drafting.complete(asked)).tokens,
    ]);
    await drafting.close();
  });
});

describe('skein.fetch', () => {
  const url = 'http://program/v1/completions';
  const post = (init: RequestInit & { duplex?: 'half' }) =>
    new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, ...init });

  it('answers a request, below a path of the program too', async () => {
    const body = JSON.stringify({ model: skein.info.name, prompt: 'Once', max_tokens: 2, ignore_eos: true });
    const answer = await skein.fetch(post({ body }));
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 2 } });
    const listed = await skein.fetch(new Request('http://program/llm/v1/models'), {
      basePath: '/llm/',
      env: {},
    } as never);
    expect(await listed.json()).toMatchObject({ data: [{ id: skein.info.name }] });
    expect(
      (await skein.fetch(new Request('http://program/other/v1/models'), { basePath: '/llm' })).status,
    ).toBe(404);
  });

  it('takes an address in place of a request, whatever its host', async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ model: skein.info.name, prompt: 'Once', max_tokens: 2, ignore_eos: true });
    for (const address of ['/v1/completions', url, new URL('https://elsewhere.example/llm/v1/completions')]) {
      const answer = await skein.fetch(address, { method: 'POST', headers, body, basePath: '/llm' });
      expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 2 } });
    }
  });

  it('rejects with the reason of a signal, given beside an address', async () => {
    const reason = new Error('not needed any more');
    const asked = skein.fetch('/v1/models', { signal: AbortSignal.abort(reason) });
    await expect(asked).rejects.toBe(reason);
    const body = JSON.stringify({ model: skein.info.name, prompt: 'Once' });
    expect((await skein.fetch(post({ body }), { signal: AbortSignal.abort(reason) })).status).toBe(499);
  });

  it.each([
    ['http://[', {}, 'skein.fetch takes what fetch takes: a Request, or an address such as /v1/models.'],
    [5, {}, 'skein.fetch takes what fetch takes'],
    [undefined, {}, 'skein.fetch takes what fetch takes'],
    [new Request(url), { basePath: 5 }, 'basePath is a number; a path, such as /llm, is expected.'],
  ])('says which argument is wrong: %s, %o', async (request, given, words) => {
    const error = await skein.fetch(request as never, given as never).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect((error as Error).message).toContain(words);
  });

  it.each([
    ['of no declared length', {}],
    ['of a declared length', { 'content-length': '5000' }],
    ['that is a form', { 'content-type': 'multipart/form-data; boundary=x' }],
  ])(
    'leaves a body %s that stops in the middle when the signal is aborted, and cancels it',
    async (_, headers) => {
      const abort = new AbortController();
      let cancelled = 0;
      const body = new ReadableStream({
        pull: (controller) => {
          controller.enqueue(new TextEncoder().encode('{"model"'));
          setTimeout(() => abort.abort());
          return new Promise(() => {});
        },
        cancel: () => {
          cancelled++;
        },
      });
      const of = { 'content-type': 'application/json', ...headers };
      const path = 'content-type' in headers ? 'http://program/v1/files' : url;
      const request = new Request(path, {
        method: 'POST',
        headers: of,
        body,
        signal: abort.signal,
        duplex: 'half',
      } as RequestInit);
      expect((await skein.fetch(request)).status).toBe(499);
      expect(cancelled).toBe(1);
    },
  );
});
