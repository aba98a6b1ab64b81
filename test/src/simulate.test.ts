import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { simulate } from 'skein';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-simulate');

const REQUEST = { id: 'A', arrivalIteration: 0, promptLength: 4, maxNewTokens: 6 };
const INPUT = {
  policy: 'MAX_UTILIZATION' as const,
  numBlocks: 4,
  tokensPerBlock: 4,
  maxNumRequests: 8,
  requests: [REQUEST, { id: 'B', arrivalIteration: 1, promptLength: 5, maxNewTokens: 5 }],
};

let files = 0;
function file(content: unknown): string {
  const path = join(folder, `${files++}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

describe('skein simulate', () => {
  it('draws a row for each request and a bar of blocks', async () => {
    const { code, stdout, stderr } = await runCli(['simulate', file(INPUT)]);
    expect(stdout.split('\n')).toEqual([
      'MAX_UTILIZATION, 4 blocks of 4 tokens',
      '2 requests, 7 iterations, 1 pause, at most 4 blocks (100 %)',
      '',
      '        0',
      'A       C=====',
      'B        C===pC',
      'blocks  ▂████▆▆',
      '',
      '. waiting  C context  = generating  p paused  (blank: not there yet, or done)',
      '',
    ]);
    expect([code, stderr]).toEqual([0, '']);
  });

  it('prints what the library returns with --json', async () => {
    const { code, stdout } = await runCli(['simulate', '--json', file(INPUT)]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual(simulate(INPUT));
    expect(simulate(INPUT).iterations).toHaveLength(7);
  });

  it('takes a file that begins with a byte order mark', async () => {
    const { code } = await runCli(['simulate', file(`\uFEFF${JSON.stringify(INPUT)}`)]);
    expect(code).toBe(0);
  });

  it('explains the file in --help', async () => {
    const { code, stdout } = await runCli(['simulate', '--help']);
    expect(code).toBe(0);
    for (const name of [...Object.keys(INPUT), '--json', 'maxNumTokens', 'chunk', 'Exit codes: 2']) {
      expect(stdout).toContain(name);
    }
  });

  it.each<[string, () => string[], number, RegExp]>([
    ['no file', () => [], 2, /missing required argument 'FILE.json'/i],
    [
      'a file that is not there',
      () => [join(folder, 'none.json')],
      2,
      /none\.json cannot be read: there is no such file\./,
    ],
    ['a folder', () => [folder], 2, /cannot be read: it is a folder\./],
    ['no JSON', () => [file('{"policy": ]')], 2, /\.json is not JSON: /],
    ['an unknown option', () => [file(INPUT), '--jsn'], 2, /--json/],
    [
      'a wrong value',
      () => [file({ ...INPUT, numBlocks: 0 })],
      2,
      /numBlocks is 0; it must be a whole number from 1/,
    ],
    [
      'a field that cannot work yet',
      () => [file({ ...INPUT, requests: [{ ...REQUEST, loraTaskId: 2 }] })],
      2,
      /loraTaskId = 2 is refused/,
    ],
    [
      'a request that can never run',
      () => [file({ ...INPUT, requests: [{ ...REQUEST, maxNewTokens: 13 }] })],
      1,
      /requests\[0\] \(id "A"\) can never run: .* need 5 KV cache blocks of 4 tokens; the pool has 4\./,
    ],
  ])('%s: one sentence and the exit code', async (_, args, expectedCode, message) => {
    const { code, stdout, stderr } = await runCli(['simulate', ...args()]);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^skein: [^\n]+\n$/);
    expect(stdout).toBe('');
    expect(code).toBe(expectedCode);
  });
});
