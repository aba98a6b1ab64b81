import { HostClosedError, InProcessHost, RequestError, type TokenPiece, type TokenRequest } from 'skein';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { JoinedRows } from '../../callbacks/joined-rows.js';
import { failure } from '../../callbacks/request-failure.js';
import { entryOf } from '../../host/host-entry.js';
import { Resumption } from '../../host/resumption.js';
import { SequenceQueues } from '../../host/sequence-queues.js';
import { fakeEngine } from '../support/fake-engine.js';
import { allOf, wholeOf } from '../support/host-answers.js';

const AT_ONCE = { workerRestart: { delayMs: 0, maxDelayMs: 0 } };
const NEVER_AGAIN = { workerRestart: { delayMs: 86_400_000, maxDelayMs: 86_400_000 } };
/** The token that ends the worker of `deadly`. */
const DEADLY = 66;
const PROMPT = [5, 6, 7, 8, 9, 10, 11, 12, 13];
const ASK: TokenRequest = { promptTokens: PROMPT, maxNewTokens: 12, temperature: 1, seed: 3n };

/** Requests of every kind that has a way of its own through a loss. */
const KINDS: readonly TokenRequest[] = [
  { ...ASK, temperature: 0 },
  { ...ASK, returnLogProbs: true, topLogProbs: 2 },
  { ...ASK, numSequences: 3, returnLogProbs: true },
  { ...ASK, streaming: false },
  { ...ASK, numSequences: 2, streaming: false },
  { ...ASK, temperature: 0, beams: { width: 3 }, endTokenIds: [40, 41] },
  { ...ASK, mirostat: 2 },
  { ...ASK, repetitionPenalty: 1.3, frequencyPenalty: 0.4, noRepeatNgramSize: 2 },
  { ...ASK, minLength: 4, endTokenIds: Array.from({ length: 30 }, (_, i) => 3 * i) },
  { ...ASK, numSequences: 4, stopWords: Array.from({ length: 20 }, (_, i) => [5 * i + 1]) },
  { ...ASK, returnGenerationLogits: true },
  { ...ASK, returnContextLogProbs: true, topContextLogProbs: 2, returnContextLogits: true },
  { ...ASK, knownOutputIds: [[4, 5, 6]] },
  {
    ...ASK,
    badWords: [[1], [2, 3]],
    logitBias: new Map([[7, 4]]),
    positionIds: [0, 1, 2, 5, 6, 7, 8, 9, 10],
  },
  { ...ASK, reasoningBudget: { tokens: 3, endToken: 9 }, draftTokens: [1, 2, 3] },
];

const hosts: InProcessHost[] = [];
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close({ abort: true });
});

/** A host whose worker ends when it is given DEADLY. */
function deadly(params: OptionalParams = AT_ONCE, stepMs = 1): InProcessHost {
  const host = new InProcessHost({
    ...fakeEngine(`dieToken=${DEADLY}&stepMs=${stepMs}`, params),
    onError: () => {},
  });
  hosts.push(host);
  return host;
}

/** A host whose worker ends in the step that the test names. */
class MortalHost {
  readonly host: InProcessHost;
  readonly #mortal = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));

  constructor(params: object = {}, options: object = {}) {
    this.host = new InProcessHost({
      ...fakeEngine('', {
        ...AT_ONCE,
        maxNumSequences: 64,
        ...params,
        mortal: this.#mortal.buffer,
        executorModule: new URL('../support/modules/mortal-executor.mjs', import.meta.url),
      } as OptionalParams),
      maxBeamWidth: 3,
      onError: () => {},
      ...options,
    });
  }

  /** Has the worker end in its n-th step from now on; 0: not at all. */
  dieAt(step: number): void {
    Atomics.store(this.#mortal, 1, 0);
    Atomics.store(this.#mortal, 0, 0);
    Atomics.store(this.#mortal, 1, step);
  }
}

describe('requests of every kind', () => {
  let mortal: MortalHost;
  let undisturbed: Awaited<ReturnType<typeof allOf>>;
  beforeAll(async () => {
    mortal = new MortalHost();
    undisturbed = await allOf(mortal.host, KINDS);
  });
  afterAll(() => mortal.host.close({ abort: true }));

  it('are answered as without a loss, whichever step their engine dies in', async () => {
    for (const [deaths, step] of [1, 2, 3, 5, 8, 11, 12].entries()) {
      mortal.dieAt(step);
      expect(await allOf(mortal.host, KINDS), `step ${step}`).toEqual(undisturbed);
      expect(mortal.host.restarts).toBe(deaths + 1);
    }
    const ends = undisturbed.flat().map(({ finishReason }) => finishReason);
    expect(new Set(ends)).toEqual(new Set(['stop', 'length']));
  });

  it('go on behind each token that they get', async () => {
    // Several sequences compute the tokens that they have step by step, and sequences that start over do so
    // too.
    const gaining = KINDS.filter(
      ({ streaming = true, beams, mirostat, numSequences }) =>
        streaming && !beams && !mirostat && !numSequences,
    );
    const expected = undisturbed.filter((_, i) => gaining.includes(KINDS[i]!));
    const before = mortal.host.restarts;
    mortal.dieAt(2);
    const answers = allOf(mortal.host, gaining);
    for (let deaths = 1; deaths < 9; deaths++) {
      await expect.poll(() => mortal.host.restarts, { interval: 1 }).toBe(before + deaths);
      mortal.dieAt(2);
    }
    expect(await answers).toEqual(expected);
  });
});

it('a request without a seed goes on with the one that it was given', async () => {
  const { host, dieAt } = bound(new MortalHost());
  const ask = { ...ASK, seed: null };
  dieAt(6);
  const broken = await wholeOf(host.submit(ask));
  expect(host.restarts).toBe(1);
  expect(broken).toEqual(await wholeOf(host.submit({ ...ask, seed: broken.seed! })));
});

it('rows of pictures go to the first engine with their memory, and to the next ones again', async () => {
  const { host, dieAt } = bound(new MortalHost());
  const { vocabSize } = await host.ready;
  const promptEmbeddings = [1, 2, 3].map((x) => Float32Array.of(x, x, -x, 0));
  const promptTokens = [...PROMPT, vocabSize + 500, vocabSize + 7, vocabSize + 2 ** 29, 5];
  const ask = { ...ASK, promptTokens, promptEmbeddings, imageGrids: [[PROMPT.length, 1, 3]] };
  const expected = await wholeOf(host.submit(ask));
  let given: Float32Array<ArrayBuffer> | null = null;
  const joined = await JoinedRows.of(promptEmbeddings);
  const take = vi.spyOn(joined, 'take').mockImplementation(() => {
    if (given !== null) return null;
    given = Float32Array.from(promptEmbeddings.flatMap((row) => [...row]));
    return given;
  });
  dieAt(4);
  expect(await wholeOf(host.submit({ ...ask, joinedEmbeddings: joined }))).toEqual(expected);
  expect([host.restarts, take.mock.calls.length]).toEqual([1, 2]);
  expect(given!.byteLength).toBe(0);
  expect(promptEmbeddings[2]).toEqual(Float32Array.of(3, 3, -3, 0));
});

it('times are those of the whole request', async () => {
  const { host, dieAt } = bound(new MortalHost({ workerRestart: { delayMs: 300 } }));
  dieAt(4);
  const pieces: TokenPiece[] = [];
  for await (const piece of host.submit(ASK)) pieces.push(piece);
  const { firstScheduledMs, firstTokenMs, lastTokenMs } = pieces.at(-1)!.timing!;
  expect(firstScheduledMs).toBeLessThanOrEqual(firstTokenMs!);
  expect(lastTokenMs! - firstTokenMs!).toBeGreaterThan(250);
});

it('a sequence that was left stays so, and the others go on', async () => {
  const { host, dieAt } = bound(new MortalHost());
  const ask = { ...ASK, maxNewTokens: 60, numSequences: 3 };
  const whole = await Promise.all(host.submitSeveral(ask).map((stream) => wholeOf(stream)));
  dieAt(20);
  const [first, second, third] = host.submitSeveral(ask);
  for await (const _ of second!) break;
  const others = await Promise.all([first!, third!].map((stream) => wholeOf(stream)));
  expect(others).toEqual([whole[0], whole[2]]);
  expect([host.restarts, host.running]).toEqual([1, 0]);
});

describe('a request that kills its engines', () => {
  it('is tried alone at last, and fails alone', async () => {
    const host = deadly();
    const asks = [2, 3, 4].map((token) => ({
      promptTokens: [token],
      maxNewTokens: 8,
      temperature: 0,
      seed: 1n,
    }));
    const expected = await allOf(host, asks);
    const innocent = allOf(host, asks);
    const fatal = wholeOf(host.submit({ promptTokens: [DEADLY], maxNewTokens: 5 }));
    const waiting = allOf(host, asks);
    await expect(fatal).rejects.toThrow(
      /^The request was begun 3 times, and its engine was lost in each of them; it is not tried again\. The engine failed: .* ended unexpectedly with exit code 1/,
    );
    await expect(fatal).rejects.toMatchObject({ isInvalid: false, kind: 'internal' });
    expect(await innocent).toEqual(expected);
    expect(await waiting).toEqual(expected);
    expect([host.state, host.restarts, host.queued, host.running]).toEqual(['running', 3, 0, 0]);
  });

  it('is no burden to others that it is tried with, though none of them has a token', async () => {
    const host = deadly();
    await host.ready;
    const beams = { promptTokens: [1, 2], maxNewTokens: 30, streaming: false, temperature: 0 };
    const fatal = [1, 2].map(() =>
      wholeOf(host.submit({ promptTokens: [DEADLY], maxNewTokens: 5 })).catch((error: unknown) => error),
    );
    const innocent = await allOf(host, [beams, beams]);
    for (const error of await Promise.all(fatal)) expect(error).toBeInstanceOf(RequestError);
    expect(innocent[0]![0]!.tokens).toHaveLength(30);
    expect(host.restarts).toBe(4);
  });

  it('fails after ten losses, with tokens or without', async () => {
    const { host, dieAt } = bound(new MortalHost());
    dieAt(2);
    const whole = wholeOf(host.submit({ ...ASK, maxNewTokens: 100 })).catch((error: unknown) => error);
    for (let deaths = 1; deaths <= 9; deaths++) {
      await expect.poll(() => host.restarts, { interval: 1 }).toBe(deaths);
      dieAt(3);
    }
    const failed = (await whole) as RequestError;
    expect(failed.message).toMatch(
      /^The request was begun 10 times, and its engine was lost in each of them;/,
    );
  });
});

describe('while no engine runs, a request that it had', () => {
  /** A host that has lost its engine with a request of each of these, of which each has begun. */
  async function lost(...asks: Partial<TokenRequest>[]) {
    const { host, dieAt } = bound(new MortalHost(NEVER_AGAIN));
    dieAt(5);
    const streams = asks.map((ask) => host.submit({ ...ASK, ...ask }));
    const answers = streams.map((stream) => wholeOf(stream));
    await expect.poll(() => host.state, { interval: 1 }).toBe('restarting');
    await expect.poll(() => host.lost, { interval: 1 }).toBe(asks.length);
    return { host, streams, answers };
  }

  it('can be cancelled, and ends at its time limit, with what it has', async () => {
    const leave = new AbortController();
    const { host, streams, answers } = await lost({ signal: leave.signal }, { timeLimitMs: 2000 }, {});
    expect([host.queued, host.running, host.waiting]).toEqual([3, 0, 3]);
    leave.abort();
    host.cancel(streams[2]!.requestId);
    const ends = await Promise.all(answers);
    expect(ends.map(({ finishReason }) => finishReason)).toEqual(['cancelled', 'timeout', 'cancelled']);
    for (const { tokens } of ends) expect(tokens).toHaveLength(4);
    expect([host.lost, host.size]).toEqual([0, 0]);
  });

  it('is cancelled by the end of a close, and takes no place of the queue', async () => {
    const { host, answers } = await lost({}, {});
    const waiting = wholeOf(host.submit(ASK));
    await host.close({ timeoutMs: 10 });
    for (const { finishReason } of await Promise.all([...answers, waiting]))
      expect(finishReason).toBe('cancelled');
    expect(host.state).toBe('stopped');
  });
});

it('fails with a reason where no other engine comes', async () => {
  const { host, dieAt } = bound(
    new MortalHost({ workerRestart: { delayMs: 0, maxFailedStarts: 1 }, failingLoads: 1 }),
  );
  dieAt(3);
  const failed = await wholeOf(host.submit(ASK)).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(HostClosedError);
  expect((failed as Error).message).toMatch(/^The engine failed: .*could not be started again in 1 attempt/);
});

it('does not go on in an engine that computes other bits, but begins there', async () => {
  const { host, dieAt } = bound(new MortalHost({ isRenamed: true }));
  await host.ready;
  dieAt(3);
  const begun = wholeOf(host.submit(ASK)).catch((error: unknown) => error);
  expect(await begun).toMatchObject({
    kind: 'internal',
    message: expect.stringMatching(
      /^The engine was lost, and the one that took its place computes other bits \(fp_\w+, not fp_\w+\): the answer cannot go on\.$/,
    ),
  });
  dieAt(1);
  expect((await wholeOf(host.submit(ASK))).tokens).toHaveLength(12);
});

it('fails at once where the host is told so', async () => {
  for (const [params, options] of [
    [AT_ONCE, { resumeRequests: false }],
    [{ workerRestart: false as const }, {}],
  ] as const) {
    const { host, dieAt } = bound(new MortalHost(params, options));
    dieAt(3);
    const failed = await wholeOf(host.submit(ASK)).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(RequestError);
    expect((failed as Error).message).toMatch(/^The engine failed: /);
  }
});

it('fails at once where it has a post-processor', async () => {
  const processors = { logitsPostProcessors: { nothing: () => {} } };
  const { host, dieAt } = bound(new MortalHost({}, processors));
  dieAt(3);
  const [processed, plain] = await Promise.allSettled([
    wholeOf(host.submit({ ...ASK, logitsPostProcessor: 'nothing' })),
    wholeOf(host.submit(ASK)),
  ]);
  expect(processed).toMatchObject({
    reason: {
      message: expect.stringMatching(
        /^The engine failed: .* The request does not go on in the next engine: what its logits post-processor has seen of it is not seen again\.$/,
      ),
    },
  });
  expect(plain.status).toBe('fulfilled');
});

it('waits no longer than ranks wait for one another, where nobody knows whether they come', () => {
  vi.useFakeTimers();
  try {
    const failed: string[] = [];
    const resumption = new Resumption({
      wake: () => {},
      end: () => {},
      finish: () => {},
      fail: (entry, error) => {
        failed.push(error.message);
        resumption.end(entry);
      },
    });
    const entry = (id: bigint) => {
      const pieces = new SequenceQueues([], ASK);
      const left = new Set([0]);
      return entryOf(
        { requestId: id, inputs: {} },
        ASK,
        { ...pieces, isOver: () => false } as never,
        left,
        () => {},
      );
    };
    const [first, second] = [entry(1n), entry(2n)];
    resumption.lose(first, failure('internal', 'lost'));
    resumption.limitWait(1000, 'rank 1 is missing');
    vi.advanceTimersByTime(600);
    resumption.lose(second, failure('internal', 'lost'));
    // Called again as ranks come and go: the time counts from the first.
    resumption.limitWait(1000, 'rank 2 is missing');
    expect([resumption.size, failed]).toEqual([2, []]);
    vi.advanceTimersByTime(500);
    expect([resumption.size, failed]).toEqual([0, ['rank 1 is missing', 'rank 1 is missing']]);
    resumption.lose(entry(3n), failure('internal', 'lost'));
    resumption.limitWait(1000, 'rank 1 is missing');
    resumption.endLimit();
    vi.advanceTimersByTime(5000);
    expect(resumption.size).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

function bound(mortal: MortalHost) {
  hosts.push(mortal.host);
  return { host: mortal.host, dieAt: (step: number) => mortal.dieAt(step) };
}
