import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = mkdtempSync(join(tmpdir(), 'skein-simulate-batcher-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const CONFIG = '{"max_batch_size": 8, "dynamic_batching": {"max_queue_delay_microseconds": 2000}}';
const even = ['--arrivals', 'constant', '--rate', '1000', '--requests', '8'];
const simulate = (...args: string[]) => runCli(['simulate', ...args]);

describe('skein simulate --batcher', () => {
  it('draws sizes of batches and tells how long requests waited', async () => {
    const { code, stdout, stderr } = await simulate('--batcher', CONFIG, ...even, '--batch-us', '500');
    // One comes each millisecond, and a batch goes 2 ms after its first request: with those that have come by then.
    expect(stdout.split('\n')).toEqual([
      'at most 8 rows, preferred 8, delay 2 ms; 1 instance, 500 µs a batch and 100 µs a row',
      '8 requests in 0.009 s, 8 answered',
      '920 requests/s, 920 rows/s',
      '3 batches of 2.7 rows on average, instances busy for 26 %',
      '',
      'rows  batches',
      '   2        1  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇',
      '   3        2  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇',
      '',
      '           mean       p50       p90       p99       max',
      expect.stringMatching(/^queue /),
      expect.stringMatching(/^total /),
      '',
    ]);
    expect([code, stderr]).toEqual([0, '']);
  });

  it('reads the configuration of a model, its instances too', async () => {
    const model = join(folder, 'resnet');
    mkdirSync(model);
    writeFileSync(
      join(model, 'config.pbtxt'),
      'name: "resnet"\nmax_batch_size: 4\ninstance_group [{ count: 3 }]\ndynamic_batching { preferred_batch_size: [2, 4] }\n',
    );
    for (const path of [model, join(model, 'config.pbtxt')]) {
      const { code, stdout } = await simulate('--batcher', path, ...even);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^at most 4 rows, preferred 2, 4, delay 0 µs; 3 instances, /);
    }
  });

  it('says that a model without dynamic_batching is given one request a batch', async () => {
    const { stdout } = await simulate('--batcher', '{"max_batch_size": 8}', ...even);
    expect(stdout).toMatch(/^one request a batch; 1 instance, /);
  });

  it('prints everything with --json, the same each time', async () => {
    const args = ['--json', '--batcher', CONFIG, '--rate', '3000', '--rows', '1,2,4', '--seed', '5'];
    const { code, stdout } = await simulate(...args);
    expect(code).toBe(0);
    const result = JSON.parse(stdout) as Record<string, unknown>;
    expect(result).toMatchObject({ requests: 10_000, answered: 10_000, refused: 0, expired: 0 });
    expect(Object.keys(result.queueUs as object)).toEqual(['mean', 'p50', 'p90', 'p99', 'max']);
    expect((await simulate(...args)).stdout).toBe(stdout);
    expect((await simulate(...args.slice(0, -1), '6')).stdout).not.toBe(stdout);
  });

  it('takes requests from a trace, in any order', async () => {
    const trace = file(
      'trace.jsonl',
      '{"at_us": 30, "rows": 3, "shape": "16"}\n\n{"at_us": 0, "rows": 1, "shape": "8"}\n{"at_us": 10, "rows": 2, "shape": "8"}\n',
    );
    const { code, stdout } = await simulate('--json', '--batcher', CONFIG, '--trace', trace);
    expect(code).toBe(0);
    // 1 and 2 fit each other, and go when the third comes, which does not; that one waits for its delay.
    expect(JSON.parse(stdout)).toMatchObject({
      batchSizes: [{ rows: 3, batches: 2 }],
      queueUs: { max: 2000 },
    });
  });

  it('draws at most 24 bars', async () => {
    const config = '{"max_batch_size": 1000, "dynamic_batching": {}}';
    const args = ['--rows', '1,50,999', '--rate', '100000', '--row-us', '1'];
    const { stdout } = await simulate('--batcher', config, ...args);
    expect(stdout.split('\n').filter((line) => line.includes('▇')).length).toBeLessThanOrEqual(24);
    expect(stdout).toMatch(/^ *967-1000 |^ *\d+-1000 /m);
  });

  it.each<[string, string[], RegExp]>([
    [
      'a field that there is not',
      ['--batcher', '{"max_batch": 8}'],
      /--batcher:1: max_batch is no field here/,
    ],
    [
      'a preferred size that is too large',
      ['--batcher', '{"max_batch_size": 2, "dynamic_batching": {"preferred_batch_size": [4]}}'],
      /preferred_batch_size\[0\] is 4; a whole number from 1 to 2 is expected/,
    ],
    ['no such file', ['--batcher', join(folder, 'none')], /none cannot be read: there is no such file\./],
    ['a folder without a configuration', ['--batcher', tmpdir()], /has no config\.pbtxt, \.json or \.yaml\./],
    ['a rate of nothing', ['--batcher', CONFIG, '--rate', '0'], /--rate is "0"; it must be a number from/],
    ['too many requests', ['--batcher', CONFIG, '--requests', '1e9'], /--requests is "1e9"; it must be/],
    [
      'rows that are none',
      ['--batcher', CONFIG, '--rows', '1,,2'],
      /--rows is ""; it must be a whole number/,
    ],
    [
      'more rows than a batch takes',
      ['--batcher', CONFIG, '--rows', '9'],
      /has 9 rows, and max_batch_size is 8/,
    ],
    ['a file beside it', ['--batcher', CONFIG, 'plan.json'], /--batcher and plan\.json exclude each other\./],
    ['its flags without it', ['--row-us', '3', 'plan.json'], /--row-us is for --batcher/],
    [
      'a rate beside a trace',
      ['--batcher', CONFIG, '--trace', 'x', '--rate', '3'],
      /--rate and --trace exclude each other/,
    ],
    [
      'a trace that is not there',
      ['--batcher', CONFIG, '--trace', 'x'],
      /The trace x cannot be read: there is no/,
    ],
    ['an empty trace', ['--batcher', CONFIG, '--trace', file('empty', '\n')], /empty has no request\./],
    [
      'a line that is none',
      ['--batcher', CONFIG, '--trace', file('bad', '{"at_us": 1}\n{')],
      /bad:2: the line is "\{"; it must be a JSON object\./,
    ],
    [
      'a field of it',
      ['--batcher', CONFIG, '--trace', file('field', '{"at_us": -1}')],
      /field:1: at_us is -1; it must be a number from 0/,
    ],
    [
      'a field that it does not have',
      ['--batcher', CONFIG, '--trace', file('stranger', '{"at": 1}')],
      /stranger:1: there is no field at; fields: at_us, rows/,
    ],
  ])('%s: one sentence and exit code 2', async (_, args, message) => {
    const { code, stdout, stderr } = await simulate(...args);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^skein: [^\n]+\n$/);
    expect([stdout, code]).toEqual(['', 2]);
  });
});
