import { type BenchOptions, runBenchmark } from 'skein/loadgen';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { expectIdle, metric } from './support/metrics.js';
import { type SkeinProcess, startFakeServer } from './support/skein-process.js';

// The server under the load of the load generator: what one of them counts the other must have counted.
const start = (flags: Record<string, string>, stepMs: number) =>
  startFakeServer({ model: tinyModelPath('gqa'), ...flags }, { vocabSize: 320, maxSeqLen: 2048, stepMs });

const between = (min: number, max: number) => ({ kind: 'uniform', min, max }) as const;
const data = { kind: 'random', inputTokens: between(4, 40), outputTokens: between(2, 12) } as const;

async function load(server: SkeinProcess, options: Partial<BenchOptions>, signal?: AbortSignal) {
  const all = { url: server.url, data, workers: 1, warmup: 0, calibrate: false, ...options };
  const { runs } = await runBenchmark(all, signal === undefined ? {} : { signal });
  return runs[0]!;
}

describe('the server under load', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await start({ maxActiveRequests: '16' }, 1);
  });
  afterAll(() => server?.stop());

  it.each(['chat', 'completions', 'responses'] as const)(
    'answers %s of an open loop, each whole; tokens are as many in usage, stream and /metrics',
    async (backend) => {
      const names = ['generation_tokens_total', 'prompt_tokens_total'] as const;
      const before = await Promise.all(names.map((name) => metric(server.url, name)));
      const run = await load(server, { backend, arrivals: { kind: 'poisson', rate: 200 }, requests: 40 });
      expect(run.requests).toMatchObject({ total: 40, outcomes: { completed: 40 }, statuses: { 200: 40 } });
      expect(run.tokens).toMatchObject({ withoutUsage: 0, fullLength: { requests: 40, exact: 40 } });
      await expectIdle(server.url);
      const after = await Promise.all(names.map((name) => metric(server.url, name)));
      const { completion, prompt } = run.tokens;
      expect(after.map((count, i) => count - before[i]!)).toEqual([completion, prompt]);
      // The metrics read during the run are this server's.
      expect(
        Object.keys(run.server!.metrics).some((name) => name.startsWith('vllm:generation_tokens_total')),
      ).toBe(true);
    },
  );

  it('finds the turns before in its cache, in conversations of a closed loop', async () => {
    const run = await load(server, {
      arrivals: { kind: 'concurrency', concurrency: 4 },
      requests: 24,
      data: { ...data, kind: 'conversations', turns: 3, systemTokens: 64 },
    });
    expect(run.requests.outcomes.completed).toBe(24);
    expect(run.tokens.cached).toBeGreaterThan(8 * 2 * 64);
    await expectIdle(server.url);
  });

  it('has nothing left of a crowd that goes all at once', async () => {
    const leave = new AbortController();
    const running = load(
      server,
      {
        ...{ arrivals: { kind: 'max' }, requests: 64 },
        data: { ...data, outputTokens: { kind: 'fixed', tokens: 1750 } },
      },
      leave.signal,
    );
    await expect.poll(() => metric(server.url, 'num_requests_running')).toBe(16);
    leave.abort();
    const run = await running;
    const { completed, cancelled, not_sent } = run.requests.outcomes;
    expect([completed, cancelled + not_sent]).toEqual([0, 64]);
    expect(cancelled).toBeGreaterThan(0);
    await expectIdle(server.url);
  });

  it('leaves every request with an outcome where it is killed', async () => {
    const running = load(server, {
      arrivals: { kind: 'constant', rate: 100 },
      requests: 80,
      scrape: false,
      data: { ...data, outputTokens: { kind: 'fixed', tokens: 1750 } },
    });
    await expect.poll(() => metric(server.url, 'num_requests_running')).toBeGreaterThan(10);
    server.child.kill('SIGKILL');
    const { requests } = await running;
    const { connection_reset, connect_failed } = requests.outcomes;
    expect(requests.total).toBe(80);
    expect(connection_reset + connect_failed).toBe(80);
    expect(connection_reset).toBeGreaterThan(10);
  });
});

describe('a server that is too small', () => {
  it('refuses what its queue does not hold, and answers the rest', async () => {
    const server = await start({ maxActiveRequests: '2', maxQueuedRequests: '4' }, 20);
    const run = await load(server, { arrivals: { kind: 'max' }, requests: 40 });
    const { completed, rate_limited } = run.requests.outcomes;
    expect(completed + rate_limited).toBe(40);
    expect(completed).toBeGreaterThanOrEqual(6);
    expect(rate_limited).toBeGreaterThan(0);
    expect(run.requests.statuses).toEqual({ 200: completed, 429: rate_limited });
    await expectIdle(server.url);
    server.child.kill('SIGKILL');
  });
});
