import { type BenchOptions, benchReport, OUTCOMES, runBenchmark } from 'skein/loadgen';
import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, FakeLlm, goodChat } from './support/fake-llm.js';

let server: FakeLlm;

afterEach(() => server.close().catch(() => {}));

const short = { kind: 'fixed', tokens: 4 } as const;
const data = { kind: 'random', inputTokens: { kind: 'fixed', tokens: 20 }, outputTokens: short } as const;

async function bench(answer: Answer, options: Partial<BenchOptions> = {}, signal?: AbortSignal) {
  server = await FakeLlm.start(answer);
  const hooks = signal === undefined ? {} : { signal };
  const report = await runBenchmark({ url: server.url, data, scrape: false, warmup: 0, ...options }, hooks);
  // What the schema says is what there is.
  expect(benchReport.parse(JSON.parse(JSON.stringify(report)))).toEqual(JSON.parse(JSON.stringify(report)));
  return report;
}

const sum = (values: object) =>
  Object.values(values).reduce((total: number, value: number) => total + value, 0);

describe('runBenchmark', () => {
  it('5: over two worker processes, every request is answered once and counted once', async () => {
    const report = await bench(goodChat, {
      workers: 2,
      requests: 41,
      warmup: 3,
      arrivals: { kind: 'concurrency', concurrency: 5 },
    });
    const [run] = report.runs;
    expect(report).toMatchObject({ complete: true, warmup: { requests: 3, completed: 3 } });
    expect(run!.requests).toMatchObject({ total: 41, planned: 41, statuses: { 200: 41 } });
    expect(run!.requests.outcomes.completed).toBe(41);
    expect(Object.keys(run!.requests.outcomes)).toEqual([...OUTCOMES]);
    // 4: one worker has 21, the other 20.
    expect(run!.client.dealt.toSorted()).toEqual([20, 21]);
    expect(run!.client.workers).toHaveLength(2);
    // Two probes, three requests of the warm-up; all prompts differ.
    expect(server.asked).toHaveLength(46);
    const prompts = server.asked.map(({ body }) => body.messages[0].content);
    expect(new Set(prompts).size).toBe(46);
    expect(run!.tokens).toMatchObject({ completion: 164, prompt: 820, pieces: 164, withoutUsage: 0 });
    expect(run!.tokens.verified).toEqual({ requests: 41, exact: 41, meanError: 0, maxError: 0 });
    for (const name of ['ttft', 'e2e', 'queueing'] as const) expect(run!.latencies[name].count).toBe(41);
    // Three gaps each.
    expect(run!.latencies.itl.count).toBe(123);
    expect(sum(run!.timeline.sent)).toBe(41);
    expect(sum(run!.timeline.pieces)).toBe(164);
    expect(run!.timeline.inFlight.at(-1)).toBe(0);
  });

  it('2, 3: an open loop reports how far sending was behind its schedule, and what was offered and issued', async () => {
    const report = await bench(goodChat, {
      requests: 30,
      arrivals: { kind: 'poisson', rate: 100 },
      busyWait: true,
    });
    const [run] = report.runs;
    expect(run!.latencies.queueing.count).toBe(30);
    expect(run!.latencies.queueing.min).toBeGreaterThanOrEqual(0);
    expect(run!.latencies.queueing.p50).not.toBeNull();
    expect(run!.latencies.queueing.p99).not.toBeNull();
    expect(run!.throughput.offered).toBeGreaterThan(0);
    expect(run!.latencies.e2eFromScheduled.mean).toBeGreaterThanOrEqual(run!.latencies.e2e.mean!);
  });

  it('ends a closed loop by time: what was not begun was never part of it', async () => {
    const report = await bench(goodChat, {
      duration: 0.3,
      arrivals: { kind: 'concurrency', concurrency: 2 },
    });
    const [run] = report.runs;
    expect(report.complete).toBe(true);
    expect(run!.requests.planned).toBeNull();
    expect(run!.requests.outcomes.completed).toBe(run!.requests.total);
    expect(run!.requests.total).toBe(server.asked.length - 2);
  });

  it('cut off, reports every planned request, marked incomplete', async () => {
    const interrupt = new AbortController();
    const answer: Answer = (asked, response, number) => {
      if (number < 12) return goodChat(asked, response, number);
      if (number === 12) setTimeout(() => interrupt.abort(new Error('SIGINT')), 50);
    };
    const report = await bench(
      answer,
      { requests: 50, arrivals: { kind: 'concurrency', concurrency: 4 } },
      interrupt.signal,
    );
    const [run] = report.runs;
    expect(report.complete).toBe(false);
    expect(run).toMatchObject({ complete: false, cutOff: 'SIGINT' });
    expect(run!.requests).toMatchObject({
      total: 50,
      outcomes: { completed: 10, cancelled: 4, not_sent: 36 },
    });
  });

  it('cuts a run off that takes longer than it may', async () => {
    const answer: Answer = (asked, response, number) =>
      number < 2 ? goodChat(asked, response, number) : undefined;
    const report = await bench(answer, { requests: 9, maxDuration: 0.4, arrivals: { kind: 'max' } });
    expect(report.runs[0]).toMatchObject({
      cutOff: 'longer than 0.4 s',
      requests: { total: 9, outcomes: { cancelled: 9 } },
    });
  });

  it('tells of prompts that the server counts otherwise, and of answers that are short', async () => {
    const answer: Answer = (asked, response, number) =>
      goodChat({ ...asked, body: { ...asked.body, max_tokens: 2 } }, response, number);
    const report = await bench(answer, { requests: 5, calibrate: false });
    const { tokens } = report.runs[0]!;
    // 20 words and 3 tokens of the template that were not known.
    expect(tokens.verified).toEqual({ requests: 5, exact: 0, meanError: 3, maxError: 3 });
    expect(tokens.fullLength).toEqual({ requests: 5, exact: 0 });
  });

  it('has no keys in its report', async () => {
    const report = await bench(goodChat, {
      requests: 1,
      apiKey: 'secret-1',
      headers: { 'x-key': 'secret-2' },
    });
    expect(JSON.stringify(report)).not.toContain('secret');
    expect(server.asked.at(-1)!.headers).toMatchObject({
      authorization: 'Bearer secret-1',
      'x-key': 'secret-2',
    });
  });

  it('refuses what does not go together, a server that is not there and one that refuses, in words', async () => {
    server = await FakeLlm.start((_, response) => void response.writeHead(401).end('who are you?'));
    const { url } = server;
    await expect(runBenchmark({ url })).rejects.toThrow(/answered with 401: who are you\?/);
    await expect(runBenchmark({ url: 'ftp://x' })).rejects.toThrow(/scheme ftp:/);
    await expect(runBenchmark({ url, requests: 0 })).rejects.toThrow(/^requests: .*>0/);
    await expect(runBenchmark({ url, data: { kind: 'trace' } })).rejects.toThrow(/needs its times/);
    await server.close();
    await expect(runBenchmark({ url })).rejects.toThrow(/\/v1\/models does not answer: /);
  });
});
