import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { cliPath, runCli, startServer } from './support/skein-process.js';

const folder = temporaryFolder('skein-rank');
const engines = new TestEngines();
let engine: string;
const secretFile = join(folder, 'secret');
beforeAll(async () => {
  engine = (await engines.get(tinyModelPath('gqa'), 'bf16')).directory;
  writeFileSync(secretFile, `${randomBytes(16).toString('hex')}\n`);
});
afterAll(() => engines.remove());

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const PLACE = ['--rank', '1', '--size', '2', '--address', '127.0.0.1:1'];

describe('skein rank', () => {
  it('joins a server, which answers as one process does, and ends with it', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const follower = runCli([
      ...['rank', engine, '--rank', '1', '--size', '2', '--pipeline-parallel-size', '2'],
      ...['--address', address, '--secret-file', secretFile],
    ]);
    const options = ['--model', engine, '--threads', '1'];
    const ranks = ['--pipeline-parallel-size', '2', '--ranks-address', address];
    const [alone, together] = await Promise.all([
      startServer(options),
      startServer([...options, ...ranks, '--ranks-secret-file', secretFile]),
    ]);
    const ask = async ({ url }: { url: string }) => {
      const body = JSON.stringify({ model: 'any', prompt: 'Hello', max_tokens: 12, temperature: 0 });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body });
      return ((await response.json()) as { choices: unknown }).choices;
    };
    expect(await ask(together)).toEqual(await ask(alone));
    await Promise.all([alone.stop(), together.stop()]);
    const { code, stderr } = await follower;
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `skein: rank 1 of 2 comes to ${address}\nskein: rank 1 of 2 is ready\nskein: rank 1 of 2 has ended with the group\n`,
    });
  });

  it('that is killed during a stream ends it with an error; /health says so, and another one brings the server back', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const args = ['rank', engine, '--rank', '1', '--size', '2', '--address', address];
    const startRank = () =>
      spawn(process.execPath, [cliPath, ...args, '--secret-file', secretFile], { stdio: 'ignore' });
    const first = startRank();
    const server = await startServer([
      ...['--model', engine, '--threads', '1', '--tensor-parallel-size', '2'],
      ...['--ranks-address', address, '--ranks-secret-file', secretFile],
    ]);
    const ask = (maxTokens: number, stream: boolean) =>
      fetch(`${server.url}/v1/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          prompt: 'Hello',
          seed: 1,
          max_tokens: maxTokens,
          stream,
          ignore_eos: true,
          temperature: 0,
        }),
      });
    const health = async () =>
      (await (await fetch(`${server.url}/health`)).json()) as { status: string; reason?: string };
    const before = await (await ask(8, false)).json();
    const reader = (await ask(100, true)).body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value, { stream: true });
    first.kill('SIGKILL');
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    expect(text).toMatch(/"error".*Rank 1 of 2 is gone/);
    expect(text.match(/"error"/g)).toHaveLength(1);
    await expect.poll(async () => (await health()).reason).toContain('Rank 1 of 2 is gone');
    expect((await health()).status).toBe('restarting');
    const second = startRank();
    await expect.poll(async () => (await health()).status).toBe('ready');
    const choices = (answer: unknown) => (answer as { choices: unknown }).choices;
    expect(choices(await (await ask(8, false)).json())).toEqual(choices(before));
    const ended = once(second, 'exit');
    await server.stop();
    expect(await ended).toEqual([0, null]);
  });

  it.each([
    [['--rank', '0'], '--rank is 0, which is the server'],
    [['--rank', 'one'], '--rank is "one"; it must be a whole number.'],
    [['--rank', '2'], '--rank is 2; of 2 ranks it must be from 0 to 1.'],
    [['--address', 'nowhere'], '--secret-file is missing: ranks that meet at nowhere must prove'],
    [['--secret-file', '/none'], 'The file of --secret-file, /none, cannot be read: there is no such file.'],
    [
      ['--pipeline-parallel-size', '3'],
      '--size is 2, but --tensor-parallel-size x --pipeline-parallel-size is 3.',
    ],
    [['--join-timeout-seconds', '0'], '--join-timeout-seconds is 0; it must be from 1 to 86400.'],
  ])('refuses %j', async (flags, message) => {
    const { code, stdout, stderr } = await runCli(['rank', engine, ...PLACE, ...flags]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`skein: ${message}`);
  });

  it('says when nobody has been there', async () => {
    const flags = ['--secret-file', secretFile, '--join-timeout-seconds', '1'];
    const { code, stderr } = await runCli(['rank', engine, ...PLACE, ...flags]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/127\.0\.0\.1:1.* within 1000 ms|ECONNREFUSED/s);
  });
});
