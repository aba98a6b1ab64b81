import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { testCacheDir, withoutLoading } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const folder = temporaryFolder('skein-exit');
const runCli = warmCli();

const model = tinyModelPath('gqa');
const serve = ['serve', '--port', '0', '--cache-dir', testCacheDir, '--model', model];

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  chmodSync(path, 0o644);
  return path;
}

const nowhere = join(folder, 'nowhere');
mkdirSync(join(folder, 'empty'));

type Case = [what: string, args: readonly string[], message: RegExp, environment?: Record<string, string>];

/** A name, a value or a configuration file that is not understood. */
const USAGE: Case[] = [
  [
    'a port out of range',
    [...serve, '--port', '70000'],
    /--port is 70000; it must be a whole number from 0 to 65535/,
  ],
  [
    'a count below 1',
    [...serve, '--max-batch-requests', '0'],
    /--max-batch-requests is 0; .*from 1 to 65536/,
  ],
  [
    'a fraction of a token',
    [...serve, '--kv-cache-tokens', '1.5'],
    /--kv-cache-tokens is 1\.5; .*of at least 1\.$/m,
  ],
  ['a share above 1', [...serve, '--memory-fraction', '2'], /fraction is 2; .*above 0 and at most 1/],
  ['blocks of 12 tokens', [...serve, '--tokens-per-block', '12'], /--tokens-per-block is 12; .*8, 16, 32/],
  ['a variable out of range', serve, /SKEIN_THREADS is 0; .*from 1 to 1024/, { SKEIN_THREADS: '0' }],
  [
    'a switch that is neither',
    serve,
    /SKEIN_PREFIX_CACHING is "maybe"; .*true or false/,
    { SKEIN_PREFIX_CACHING: 'maybe' },
  ],
  [
    'an instruction set that there is not',
    serve,
    /SKEIN_ISA is "avx3"; .*scalar, avx2, avxvnni, avx512, avx512bf16, amx, neon, neonbf16\. Did you mean avx2\?/,
    { SKEIN_ISA: 'avx3' },
  ],
  [
    'a model repository that there is not',
    ['serve', '--port', '0', '--model-repository', nowhere],
    /^skein: --model-repository is .*nowhere, and there is no such folder\.$/m,
  ],
  [
    'no configuration file',
    [...serve, '--config', nowhere],
    /configuration file .*nowhere cannot be read: there is no such file/,
  ],
  [
    'a folder as configuration',
    serve,
    /empty cannot be read: it is a folder/,
    { SKEIN_CONFIG: join(folder, 'empty') },
  ],
  [
    'a configuration that is not YAML',
    [...serve, '--config', file('bad.yaml', 'a: [\n')],
    /bad\.yaml is neither JSON nor YAML: .*line 2/,
  ],
  [
    'a value of a file out of range',
    [...serve, '--config', file('high.yaml', 'maxContextTokens: 1\n')],
    /maxContextTokens in .*high\.yaml is 1; .*at least 2/,
  ],
  [
    'threads of build out of range',
    ['build', model, '-o', nowhere, '--threads', '0'],
    /--threads is "0"; .*from 1 to 1024/,
  ],
  [
    'an argument too many',
    ['serve', 'extra'],
    /^skein: Too many arguments for 'serve'\. Expected 0 arguments but got 1\. See skein serve --help\.$/,
  ],
  [
    'a shell that there is not',
    ['completion', 'foo'],
    /^skein: .* Allowed choices are bash, zsh, fish\. See skein completion --help\.$/,
  ],
  [
    'help for a command that there is not',
    ['help', 'serv'],
    /^skein: Unknown command 'serv'; did you mean serve\?$/,
  ],
  ['help for a part of bench that there is not', ['bench', 'sweep', '--help'], /"sweep" is no URL/],
  [
    'an address of a server with a password',
    ['top', 'http://u:pw@127.0.0.1:9'],
    /^skein: The address holds a user or a password; give/,
  ],
  ['a simulation that is not JSON', ['simulate', file('plan.json', '{')], /plan\.json is not JSON/],
  ['a simulation that is not there', ['simulate', nowhere], /nowhere cannot be read: there is no such file/],
];

/** Commands that are understood, and fail. */
const FAILURE: Case[] = [
  ['a model that is not there', ['serve', '--port', '0', '--model', nowhere], /nowhere/],
  ['a folder without a model', ['serve', '--port', '0', '--model', join(folder, 'empty')], /empty/],
  [
    'a limit above the model',
    [...serve, '--max-context-tokens', '100000'],
    /--max-context-tokens is 100000; the engine was built for at most 256/,
  ],
  [
    'a cache that holds no sequence',
    [...serve, '--kv-cache-tokens', '32', '--max-context-tokens', '100'],
    /Raise --kv-cache-tokens or lower --max-context-tokens/,
  ],
  ['an address of another machine', [...serve, '--host', '192.0.2.1'], /Cannot listen on 192\.0\.2\.1/],
  ['a cache that cannot be made', [...serve, '--cache-dir', file('file', '')], /cache cannot be written/],
  ['a model to delete that is not there', ['rm', 'nope/nope'], /There is no model nope\/nope in /],
  [
    'an address of the hub with a password',
    ['serve', '--port', '0', '--models-dir', join(folder, 'models')],
    /^skein: HF_ENDPOINT holds a user or a password; give the address alone/,
    { HF_ENDPOINT: 'http://u:pw@127.0.0.1:9' },
  ],
  ['build of a model that is not there', ['build', nowhere, '-o', join(folder, 'engine')], /nowhere/],
];

async function check([, args, message, environment = {}]: Case, expected: number): Promise<void> {
  const { code, stdout, stderr } = await runCli(args, { environment });
  const last = stderr.trimEnd().split('\n').at(-1)!;
  expect(last).toMatch(message);
  // A single sentence with one full stop, in words and not in names of the code.
  expect(last).toMatch(/^skein: .*[^.?][.?]$/);
  expect(last).not.toMatch(/ENOENT|EISDIR|kvCacheConfig|expected number/);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect([code, stdout]).toEqual([expected, '']);
}

describe('the exit code is 2 and nothing is begun for', () => {
  it.each(USAGE)('%s', async (...row) => check(row, 2));
});

describe('the exit code is 1 for', () => {
  it.each(FAILURE)('%s', async (...row) => check(row, 1));
});

describe('SKEIN_DEBUG', () => {
  it('adds the stack', async () => {
    const args = ['serve', '--port', '0', '--model', nowhere];
    const { code, stderr } = await runCli(args, { environment: { SKEIN_DEBUG: '1' } });
    expect(withoutLoading(stderr)).toMatch(/^skein: .*\n[^\n]*Error: [\s\S]*\n\s+at /);
    expect(code).toBe(1);
  });
});

describe('serve --help', () => {
  it('lists the values of every option that has only some, the other variables and the exit codes', async () => {
    const { stdout } = await runCli(['serve', '--help']);
    const text = stdout.replace(/\s+/g, ' ');
    for (const values of [
      'GUARANTEED_NO_EVICT, MAX_UTILIZATION',
      'trace, debug, info, warn, error, silent',
    ]) {
      expect(text).toContain(`One of ${values}`);
    }
    expect(text).toContain('One of InflightFusedBatching, InflightBatching, V1');
    expect(text).toMatch(/--weights <auto\|f32\|bf16\|int8\|int4\|stored>/);
    expect(text).toMatch(/SKEIN_CONFIG .*SKEIN_ISA .*SKEIN_DEBUG .*Exit codes: 0 .*1 .*2 /);
  });
});
