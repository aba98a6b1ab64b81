import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BenchOptions, benchReport, OUTCOMES, runBenchmark } from 'skein/loadgen';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type Answer, FakeLlm, goodChat } from './support/fake-llm.js';

let server: FakeLlm;

const folder = temporaryFolder('skein-benchmark');
afterEach(() => server.close().catch(() => {}));

const short = { kind: 'fixed', tokens: 4 } as const;
const data = { kind: 'random', inputTokens: { kind: 'fixed', tokens: 20 }, outputTokens: short } as const;

async function bench(answer: Answer, options: Partial<BenchOptions> = {}, signal?: AbortSignal) {
  server = await FakeLlm.start(answer);
  const hooks = signal === undefined ? {} : { signal };
  // One worker process, but where a test is about several.
  const usual = { url: server.url, data, scrape: false, warmup: 0, workers: 1 };
  const report = await runBenchmark({ ...usual, ...options }, hooks);
  // The report has exactly the fields of its schema.
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
      // The last of four that are under way together: all before them were answered.
      if (number === 15) interrupt.abort(new Error('SIGINT'));
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

  it('counts goodput against limits, by name or by number', async () => {
    const preset = await bench(goodChat, { requests: 5, slo: 'mlperf-llama2-70b-server' });
    expect(preset.runs[0]!.goodput).toMatchObject({
      slo: { ttftMs: 2000, tpotMs: 200 },
      good: 5,
      share: 1,
      requestsPerSecond: preset.runs[0]!.throughput.requests,
    });
    await server.close();
    const strict = await bench(goodChat, { requests: 5, slo: { ttftMs: 1e-4 } });
    expect(strict.runs[0]!.goodput).toMatchObject({ slo: { ttftMs: 1e-4 }, good: 0, share: 0 });
  });

  it('says in the report that the client was the bottleneck: what waited in it for a connection', async () => {
    const slow: Answer = (asked, response, number) =>
      new Promise((resolve) => setTimeout(() => resolve(goodChat(asked, response, number)), 20));
    const { runs } = await bench(slow, {
      ...{ requests: 12, workers: 1, maxInFlight: 1, arrivals: { kind: 'burst', rate: 1000, size: 12 } },
    });
    expect(runs[0]!.client).toMatchObject({
      isBottleneck: true,
      findings: expect.arrayContaining([expect.objectContaining({ code: 'slots', isBottleneck: true })]),
    });
    expect(runs[0]!.client.mostWaiting).toBeGreaterThan(0);
    // Waiting shows in the latency from the schedule, and not in the one from the sending.
    const { e2e, e2eFromScheduled, queueing } = runs[0]!.latencies;
    expect(queueing.max!).toBeGreaterThan(11 * 19);
    expect(e2eFromScheduled.max!).toBeGreaterThan(12 * 19);
    expect(e2e.min!).toBeLessThan(e2eFromScheduled.max! / 2);
  });

  it('is bounded where nothing says how much: 100 requests', async () => {
    const report = await bench(goodChat);
    expect(report.runs[0]!.requests).toMatchObject({ total: 100, planned: 100 });
    expect(report.options).toMatchObject({ maxDuration: 600, timeout: 300, stall: 60 });
  });

  it('replays a trace: its times, its lengths, twice as fast', async () => {
    const file = join(folder, 'trace.jsonl');
    const line = (time: number, prompt_tokens: number) =>
      JSON.stringify({ time, prompt_tokens, completion_tokens: prompt_tokens - 4 });
    writeFileSync(file, [line(10, 6), line(10.2, 7), line(10.6, 8)].join('\n'));
    const report = await bench(goodChat, {
      ...{ arrivals: { kind: 'trace', file, speed: 2 }, data: { kind: 'trace' }, calibrate: false },
    });
    const [run] = report.runs;
    expect(run!.requests).toMatchObject({ total: 3, outcomes: { completed: 3 } });
    expect(run!.tokens).toMatchObject({ completion: 2 + 3 + 4 });
    expect(server.asked.slice(-3).map(({ body }) => body.max_tokens)).toEqual([2, 3, 4]);
    // 0.6 seconds of the trace are 0.3.
    expect(run!.seconds).toBeGreaterThanOrEqual(0.29);
  });

  it('cuts a run off that takes longer than it may', async () => {
    const answer: Answer = (asked, response, number) =>
      number < 2 ? goodChat(asked, response, number) : undefined;
    const report = await bench(answer, { requests: 9, maxDuration: 1.5, arrivals: { kind: 'max' } });
    expect(report.runs[0]).toMatchObject({
      cutOff: 'longer than 1.5 s',
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

  it('sweeps over loads, finds where more load stops to pay, and repeats each', async () => {
    let busy = 0;
    // Serves two at a time, 20 ms each.
    const answer: Answer = async (asked, response, number) => {
      while (busy >= 2) await new Promise((resolve) => setTimeout(resolve, 1));
      busy++;
      await new Promise((resolve) => setTimeout(resolve, 20));
      busy--;
      return goodChat(asked, response, number);
    };
    const report = await bench(answer, {
      requests: 16,
      repeat: 2,
      sweep: { over: 'auto', of: 'concurrency', from: 1, refine: 0 },
    });
    const loads = report.runs.map(({ load }) => load);
    expect(loads.slice(0, 4)).toEqual([1, 1, 2, 2]);
    expect(report.sweep).toMatchObject({ over: 'concurrency', isSaturated: true });
    expect(report.runs[0]!.label).toBe('concurrency 1 #1');
    expect(new Set(report.runs.map(({ seed }) => seed))).toEqual(new Set([0, 1]));
  });

  it("reads the server's metrics along", async () => {
    let scrapes = 0;
    server = await FakeLlm.start(goodChat, (url, response) => {
      if (url === '/metrics')
        response.end(`# TYPE a counter\na_total{x="1"} ${++scrapes}\nh_bucket{le="1"} 3\n`);
      else if (url === '/stats') response.end('{"Iteration Counter": 5}');
      else response.writeHead(404).end();
    });
    const report = await runBenchmark({ url: server.url, data, requests: 3, warmup: 0, workers: 1 });
    const seen = report.runs[0]!.server!;
    expect(seen.metrics).toEqual({ 'a_total{x="1"}': expect.objectContaining({ first: 1, min: 1 }) });
    expect(seen.metrics['a_total{x="1"}']!.last).toBe(scrapes);
    expect(seen.stats).toEqual({ 'Iteration Counter': 5 });
  });

  it('speaks completions, responses, kserve and raw', async () => {
    const answers: Record<string, [BenchOptions['backend'], string]> = {
      '/v1/completions': [
        'completions',
        'data: {"choices":[{"text":"a"}]}\n\ndata: {"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4}}\n\ndata: [DONE]\n\n',
      ],
      '/v1/responses': [
        'responses',
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a"}\n\nevent: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":20,"output_tokens":4}}}\n\n',
      ],
      '/v2/models/fake/generate_stream': ['kserve', 'data: {"text_output":"a"}\n\n'],
      '/': ['raw', 'data: anything\n\n'],
    };
    server = await FakeLlm.start(({ path }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answers[path]![1]);
    });
    for (const [path, [backend]] of Object.entries(answers)) {
      const before = server.asked.length;
      const options = {
        ...{ url: server.url, data, requests: 3, workers: 1 },
        ...{ warmup: 0, scrape: false, calibrate: false },
      };
      const report = await runBenchmark({ ...options, backend });
      expect(report.runs[0]!.requests.outcomes.completed).toBe(3);
      expect(report.runs[0]!.tokens.withoutUsage).toBe(backend === 'kserve' || backend === 'raw' ? 3 : 0);
      const { body, path: asked } = server.asked[before]!;
      expect(asked).toBe(path);
      const text = {
        completions: body.prompt,
        responses: body.input?.[0].content,
        kserve: body.text_input,
        raw: body,
      };
      expect(text[backend as keyof typeof text].split(' ')).toHaveLength(20);
    }
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

describe('hooks that fail', () => {
  const options = { data, scrape: false, warmup: 0, requests: 12, workers: 1 } as const;
  const arrivals = { kind: 'constant', rate: 20 } as const; // long enough for a progress or two

  it.each<[string, () => unknown]>([
    [
      'throw',
      () => {
        throw new Error('on purpose');
      },
    ],
    ['are rejected', () => Promise.reject(new Error('on purpose'))],
  ])('and %s: who only looks on warns, the load goes on; onRun ends it with its error', async (_, act) => {
    const warnings: string[] = [];
    const listen = ({ message }: Error) => void warnings.push(message);
    process.on('warning', listen);
    server = await FakeLlm.start(goodChat);
    const hooks = { onProgress: act, onNote: act };
    const report = await runBenchmark({ url: server.url, ...options, arrivals }, hooks);
    expect(report.complete).toBe(true);
    expect(report.runs[0]!.requests.outcomes.completed).toBe(12);
    await expect.poll(() => warnings).toContain('The callback onProgress failed: on purpose');
    process.off('warning', listen);
    const ends = runBenchmark({ url: server.url, ...options }, { onRun: act as () => void });
    await expect(ends).rejects.toThrow('on purpose');
  });
});

describe('a program that calls it', () => {
  it('ends by itself afterwards, on the processors that it was on all the time, whatever became of the run', async () => {
    server = await FakeLlm.start(goodChat);
    const script = `
      import { readdirSync, readFileSync } from 'node:fs';
      import { runBenchmark } from 'skein/loadgen';
      const processors = () => [...new Set(readdirSync('/proc/self/task').map((thread) =>
        /Cpus_allowed_list:\\s*(\\S+)/.exec(readFileSync('/proc/self/task/' + thread + '/status', 'utf8'))[1]))].join(' ');
      const seen = [processors()];
      const look = { onRun: () => void seen.push(processors()) };
      const options = { url: process.env.URL_OF_SERVER, scrape: false, warmup: 0, requests: 3, workers: 1,
        data: ${JSON.stringify(data)} };
      await runBenchmark(options, look);
      await runBenchmark(options, { onRun: () => { throw new Error('on purpose'); } }).catch(() => {});
      seen.push(processors());
      await runBenchmark({ ...options, url: 'http://127.0.0.1:1' }, look).catch(() => {});
      await runBenchmark(options, { signal: AbortSignal.abort(new Error('stop')) });
      seen.push(processors());
      console.log(JSON.stringify(seen));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      env: { ...process.env, URL_OF_SERVER: server.url },
    });
    const seen = JSON.parse(stdout) as string[];
    expect(seen).toHaveLength(4);
    expect(new Set(seen).size).toBe(1);
  });
});
