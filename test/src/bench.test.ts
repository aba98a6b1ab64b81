import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { benchReport } from 'skein/loadgen';
import { afterEach, describe, expect, it } from 'vitest';
import { benchOptionsOf, sloOf } from '../../src/commands/bench-flags.js';
import { FakeLlm, goodChat } from '../loadgen/support/fake-llm.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { cliPath } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-bench');
let server: FakeLlm;

afterEach(() => server?.close().catch(() => {}));

const read = (path: string) => benchReport.parse(JSON.parse(readFileSync(path, 'utf8')));

describe('skein bench', () => {
  it('loads a server, prints a summary, and writes a report of its schema', async () => {
    server = await FakeLlm.start(goodChat);
    const output = join(folder, 'run.json');
    const args = ['--requests', '12', '--concurrency', '3', '--input-tokens', '9', '--output-tokens', '5'];
    const { code, stdout, stderr } = await runCli(['bench', `${server.url}/v1`, ...args, '-o', output]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^concurrency 3\n {2}12 requests: 12 completed in /m);
    for (const row of ['TTFT', 'TPOT', 'ITL', 'E2E', 'sent behind schedule']) expect(stdout).toContain(row);
    const report = read(output);
    expect(report).toMatchObject({ complete: true, target: { model: 'fake', backend: 'chat' } });
    expect(report.runs[0]!.tokens).toMatchObject({ completion: 60, prompt: 108 });
    expect(server.asked.at(-1)!.path).toBe('/v1/chat/completions');
    expect(server.asked.at(-1)!.body).toMatchObject({
      model: 'fake',
      max_tokens: 5,
      stream: true,
      stream_options: { include_usage: true },
      ignore_eos: true,
    });
  });

  it('writes what there is when it is interrupted, marked incomplete', async () => {
    server = await FakeLlm.start((asked, response, number) => {
      if (number < 8) return goodChat(asked, response, number);
    });
    const output = join(folder, 'cut.json');
    const args = [
      'bench',
      server.url,
      '--requests',
      '20',
      '--concurrency',
      '2',
      '--warmup',
      '0',
      '-o',
      output,
    ];
    const child = spawn(process.execPath, [cliPath, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ended = once(child, 'close');
    await expect.poll(() => server.asked.length).toBe(10);
    child.kill('SIGINT');
    expect((await ended)[0]).toBe(1);
    expect(stderr).toContain('The run was cut off (SIGINT): the report is marked incomplete.');
    const { complete, runs } = read(output);
    expect([complete, runs[0]!.complete]).toEqual([false, false]);
    expect(runs[0]!.requests).toMatchObject({
      total: 20,
      outcomes: { completed: 6, cancelled: 2, not_sent: 12 },
    });
  });

  it('writes a page and a table, and compares two reports', async () => {
    server = await FakeLlm.start(goodChat);
    const path = (name: string) => join(folder, name);
    for (const name of ['a', 'b']) {
      const args = ['--requests', '6', '--output-tokens', '3', '--repeat', '2', '--warmup', '0', '--quiet'];
      const files = [
        '-o',
        path(`${name}.json`),
        '--html',
        path(`${name}.html`),
        '--csv',
        path(`${name}.csv`),
      ];
      expect((await runCli(['bench', server.url, ...args, ...files])).stderr).toBe('');
    }
    expect(readFileSync(path('a.csv'), 'utf8').trim().split('\n')).toHaveLength(13);
    expect(readFileSync(path('a.html'), 'utf8')).toContain('"schema":"skein-bench/1"');
    const compared = await runCli([
      'bench',
      'compare',
      path('a.json'),
      path('b.json'),
      '--html',
      path('c.html'),
    ]);
    expect([compared.code, compared.stderr]).toEqual([0, '']);
    expect(compared.stdout).toMatch(/^concurrency 8\n.*\n {2}requests\/s .* ± .* ± .* % \[/);
    expect(readFileSync(path('c.html'), 'utf8')).toContain('"name":"b"');
    const wrong = await runCli(['bench', 'compare', path('a.json'), path('a.csv')]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('a.csv is not JSON')]);
  });

  it('counts what this machine had no files for as client_limit, and says that the client was the bottleneck', async () => {
    server = await FakeLlm.start(
      (asked, response, number) =>
        new Promise((resolve) => setTimeout(() => resolve(goodChat(asked, response, number)), 300)),
    );
    const output = join(folder, 'limit.json');
    const args = ['--concurrency', '200', '--requests', '200', '--workers', '1', '--no-calibrate'];
    const options = ['--warmup', '0', '--connections', '0', '--output-tokens', '2', '-o', output];
    const script = `ulimit -n 100; exec "$@"`;
    const command = [
      '-c',
      script,
      'bench',
      process.execPath,
      cliPath,
      'bench',
      server.url,
      ...args,
      ...options,
    ];
    const child = spawn('bash', command, { stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    await once(child, 'close');
    const [run] = read(output).runs;
    const { outcomes, total } = run!.requests;
    expect(total).toBe(200);
    expect(outcomes.client_limit).toBeGreaterThan(50);
    expect(outcomes.completed + outcomes.client_limit).toBe(200);
    expect(run!.client.isBottleneck).toBe(true);
    expect(run!.client.findings.map(({ code }) => code)).toContain('client-limit');
    expect(stdout).toContain('THE CLIENT WAS A BOTTLENECK');
    expect(stdout).toMatch(/\d+ requests failed on limits of this machine/);
  });

  it('does not load another machine unless told to', async () => {
    const { code, stderr } = await runCli(['bench', 'http://example.com']);
    expect([code, stderr]).toEqual([
      2,
      'skein: example.com is not this machine: --yes confirms that it is to be loaded.\n',
    ]);
  });

  it('tells of a server that is not there', async () => {
    server = await FakeLlm.start(goodChat);
    const { url } = server;
    await server.close();
    const { code, stderr } = await runCli(['bench', url]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^skein: http:\S+\/v1\/models does not answer: .*\.\n$/);
  });

  it('names what it does not understand', async () => {
    const cases: [string[], RegExp][] = [
      [['--rate', 'fast'], /--rate: expected a number, found "fast"/],
      [['--rate', '5', '--concurrency', '2'], /--concurrency and --rate exclude one another/],
      [['--arrivals', 'gamma', '--rate', '5'], /--arrivals gamma needs --burstiness/],
      [['--arrivals', 'poisson'], /--arrivals poisson needs --rate R/],
      [['--burstiness', '2'], /--burstiness is for --arrivals gamma/],
      [['--input-tokens', '9-3'], /--input-tokens: a number of tokens is .*lower first/],
      [['--slo', 'ttft'], /--slo: expected ttft=MS,tpot=MS,e2e=MS or one of mlperf-/],
      [['--body', '[1]'], /--body: expected a JSON object/],
      [['--header', 'x'], /--header: expected "NAME: VALUE"/],
      [['--requests', '1.5'], /requests: .*int/],
      [['--file', 'nowhere.jsonl', '--data', 'jsonl'], /nowhere\.jsonl cannot be read/],
      [['--thnk-time', '3'], /[Dd]id you mean --think-time/],
    ];
    server = await FakeLlm.start(goodChat);
    for (const [args, message] of cases) {
      const { code, stderr } = await runCli(['bench', server.url, ...args]);
      expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    const help = await runCli(['bench', '--help']);
    expect(help.stdout).toContain('mlperf-llama3.1-8b-interactive');
  });
});

describe('the flags of skein bench', () => {
  const flags = {
    stream: true,
    ignoreEos: true,
    keepAlive: true,
    calibrate: true,
    cpuAffinity: true,
    scrape: true,
  };
  const arrivals = (more: object) => benchOptionsOf('u', { ...flags, ...more }, {}).arrivals;
  const data = (more: object) => benchOptionsOf('u', { ...flags, ...more }, {}).data;

  it('make arrivals', () => {
    expect(arrivals({})).toEqual({ kind: 'concurrency', concurrency: 8 });
    expect(arrivals({ rate: '2.5' })).toEqual({ kind: 'poisson', rate: 2.5 });
    expect(arrivals({ rate: '2', arrivals: 'constant' })).toEqual({ kind: 'constant', rate: 2 });
    expect(arrivals({ rate: '2', arrivals: 'gamma', burstiness: '0.5' })).toMatchObject({ burstiness: 0.5 });
    expect(arrivals({ rate: '2', arrivals: 'burst', burstSize: '4' })).toMatchObject({ size: 4 });
    expect(arrivals({ rate: '9', arrivals: 'ramp', rampSeconds: '30' })).toEqual({
      ...{ kind: 'ramp', from: 0, to: 9, seconds: 30 },
    });
    expect(arrivals({ arrivals: 'max' })).toEqual({ kind: 'max' });
    expect(arrivals({ trace: 't', speed: '3' })).toEqual({ kind: 'trace', file: 't', speed: 3 });
  });

  it('make data and limits', () => {
    expect(data({ inputTokens: '10-20', prefixTokens: '100', prefixes: '2' })).toMatchObject({
      kind: 'random',
      inputTokens: { kind: 'uniform', min: 10, max: 20 },
      prefix: { tokens: 100, count: 2 },
    });
    expect(data({ data: 'conversations', turns: '5', thinkTime: '0.5' })).toMatchObject({
      ...{ kind: 'conversations', turns: 5, thinkSeconds: 0.5, systemTokens: 0 },
    });
    expect(data({ file: 'f', shuffle: true })).toMatchObject({ kind: 'jsonl', file: 'f', shuffle: true });
    expect(data({ outputTokens: 'lognormal:50:0.5:200' })).toMatchObject({
      outputTokens: { kind: 'lognormal', median: 50, sigma: 0.5, max: 200 },
    });
    expect(sloOf('ttft=500, tpot=30.5')).toEqual({ ttftMs: 500, tpotMs: 30.5 });
    expect(sloOf('mlperf-llama2-70b-server')).toBe('mlperf-llama2-70b-server');
  });
});
