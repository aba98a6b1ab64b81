import { readdirSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-cli');

/** Expects a single sentence on stderr, without a stack. */
function expectOneSentence(stderr: string): void {
  expect(stderr).toMatch(/^skein: [^\n]+\n$/);
  expect(stderr).not.toMatch(/\n\s+at /);
}

describe('skein', () => {
  it('says its version', async () => {
    const { code, stdout } = await runCli(['--version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^skein \d+\.\d+\.\d+/);
  });

  it('lists every option with its variable in serve --help', async () => {
    const { code, stdout } = await runCli(['serve', '--help']);
    expect(code).toBe(0);
    for (const name of ['--model', 'SKEIN_MAX_QUEUED_REQUESTS', '--scheduler-policy', '--config']) {
      expect(stdout).toContain(name);
    }
  });

  it.each([
    ['an unknown flag with a near name', ['serve', '--modle', 'x'], /--modle.*[Dd]id you mean --model/],
    ['an unknown flag with none', ['serve', '--banana', 'x'], /--banana.*see skein serve --help/],
    ['an unknown command', ['srve'], /srve.*serve/],
    [
      'a wrong value',
      ['serve', '--model', 'x', '--weights', 'f33'],
      /--weights is "f33".*auto, f32, bf16, int8, int4/,
    ],
    ['a wrong number', ['serve', '--model', 'x', '--port', 'http'], /--port is "http"/],
    ['a flag without its value', ['serve', '--model'], /--model/],
    ['too many arguments', ['serve', 'model'], /argument/],
    ['no output of build', ['build', 'x'], /--output/],
    [
      'a wrong precision of the output layer',
      ['build', 'x', '-o', 'y', '--output-weights', 'int4'],
      /--output-weights is "int4".*auto, f32, bf16, int8, stored\. Did you mean int8/,
    ],
    [
      'a wrong precision of build',
      ['build', 'x', '-o', 'y', '--weights', 'int3'],
      /int3.*auto, f32, bf16, int8, int4/,
    ],
  ])('%s: one sentence with the alternatives, exit code 2', async (_, args, message) => {
    const { code, stderr, stdout } = await runCli(args);
    expect(stderr).toMatch(message);
    expectOneSentence(stderr);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('takes a variable as it takes a flag', async () => {
    const environment = { SKEIN_MODEL: 'x', SKEIN_SCHEDULER_POLICY: 'FAIR' };
    const { code, stderr } = await runCli(['serve'], { environment });
    expect(stderr).toMatch(/SKEIN_SCHEDULER_POLICY is "FAIR".*GUARANTEED_NO_EVICT, MAX_UTILIZATION/);
    expect(code).toBe(2);
  });

  it('a model that is not there: one sentence, exit code 1', async () => {
    const path = join(folder, 'nowhere');
    for (const args of [
      ['serve', '--port', '0', '--model', path, '--cache-dir', join(folder, 'cache')],
      ['build', path, '-o', join(folder, 'engine')],
    ]) {
      const { code, stderr } = await runCli(args);
      expect(stderr).toContain(path);
      expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^skein: /);
      expect(stderr).not.toMatch(/\n\s+at /);
      expect(code).toBe(1);
    }
    expect(readdirSync(folder)).not.toContain('engine');
  });

  it('a port in use: one sentence, before the model is loaded', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => blocker.once('listening', resolve));
    const { port } = blocker.address() as AddressInfo;
    const { code, stderr } = await runCli(['serve', '--model', folder, '--port', String(port)]);
    blocker.close();
    expect(stderr).toMatch(new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is in use.*--port`));
    expectOneSentence(stderr);
    expect(code).toBe(1);
  });
});
