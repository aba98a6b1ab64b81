import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../tools/support/free-port.js';
import { TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { cliPath, runCli as startCli, startServer } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const folder = temporaryFolder('skein-rank');
const runCli = warmCli();
const engines = new TestEngines();
let engine: string;
const secretFile = join(folder, 'secret');
beforeAll(async () => {
  engine = (await engines.get(tinyModelPath('gqa'), 'bf16')).directory;
  writeFileSync(secretFile, `${randomBytes(16).toString('hex')}\n`, { mode: 0o600 });
});
afterAll(() => engines.remove());

const PLACE = ['--rank', '1', '--size', '2', '--tensor-parallel-size', '2', '--address', '127.0.0.1:1'];

describe('skein rank', () => {
  it('joins a server, which answers as one process does, and ends with it', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const follower = startCli([
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
      const body = JSON.stringify({ prompt: 'Hello', max_tokens: 12, temperature: 0, seed: 1 });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/v1/completions`, { method: 'POST', headers, body });
      const { choices, system_fingerprint } = (await response.json()) as Record<string, unknown>;
      return { choices, system_fingerprint };
    };
    const answer = await ask(alone);
    expect(answer.system_fingerprint).toMatch(/^fp_/);
    expect(await ask(together)).toEqual(answer);
    await Promise.all([alone.stop(), together.stop()]);
    const { code, stderr } = await follower;
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `skein: rank 1 of 2 comes to ${address}\nskein: rank 1 of 2 is ready\nskein: rank 1 of 2 has ended with the group\n`,
    });
  });

  it('that is killed during a stream is a pause to it; /health says so, and another one brings the server and the stream back', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const args = ['rank', engine, ...PLACE.slice(0, -1), address];
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
    const metric = async (name: string) => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return Number(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'm').exec(text)?.[1]);
    };
    expect(server.output().stdout).toContain(`  on 2 ranks, which meet at ${address}\n`);
    expect([await metric('skein:ranks'), await metric('skein:ranks_missing')]).toEqual([2, 0]);
    const before = await (await ask(8, false)).json();
    const deltas = (stream: string) =>
      stream.split('\n').flatMap((line) => /"text":"(.*?)",/.exec(line)?.[1] ?? []);
    const undisturbed = deltas(await (await ask(240, true)).text()).join('');
    const reader = (await ask(240, true)).body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value, { stream: true });
    first.kill('SIGKILL');
    await expect
      .poll(async () => (await health()).reason)
      .toMatch(new RegExp(`Rank 1 of 2 is gone.* It is waiting for rank 1 at ${address}\\.$`));
    expect((await health()).status).toBe('restarting');
    const refused = await ask(8, false);
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
      503,
      'engine_unavailable',
    ]);
    expect(await metric('skein:ranks_missing')).toBe(1);
    expect(server.output().stderr).toContain(`waiting for rank 1 at ${address}.`);
    const second = startRank();
    // What the lost rank had part of continues when the group is complete again.
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
    expect(text).not.toMatch(/"error"/);
    expect(deltas(text).join('')).toBe(undisturbed);
    expect((await health()).status).toBe('ready');
    expect(await metric('skein:requests_resumed_total')).toBe(1);
    const choices = (answer: unknown) => (answer as { choices: unknown }).choices;
    expect(choices(await (await ask(8, false)).json())).toEqual(choices(before));
    const ended = once(second, 'exit');
    await server.stop();
    expect(await ended).toEqual([0, null]);
  });

  it('computes with its own number of threads', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const ranks = ['--pipeline-parallel-size', '2'];
    const follower = startCli([
      ...['rank', engine, '--rank', '1', '--size', '2', ...ranks, '--threads', '1000'],
      ...['--address', address, '--secret-file', secretFile],
    ]);
    // There are enough cores for one thread, and not for 1000.
    const server = await startCli([
      ...['serve', '--port', '0', '--model', engine, '--threads', '1', '--pin-threads', 'on', ...ranks],
      ...['--ranks-address', address, '--ranks-secret-file', secretFile],
    ]);
    expect(server.stderr).toMatch(/too few for 1000 threads/);
    expect([server.code, (await follower).code]).toEqual([1, 1]);
  });

  it('prints that it is ready again when a rank 0 that was killed is back', async () => {
    const address = join(folder, 'again.sock');
    const child = spawn(process.execPath, [cliPath, 'rank', engine, ...PLACE.slice(0, -1), address]);
    let told = '';
    child.stderr.on('data', (bytes: Buffer) => (told += bytes));
    const lead = () =>
      startServer([
        ...['--model', engine, '--threads', '1', '--tensor-parallel-size', '2'],
        ...['--ranks-address', address],
      ]);
    const first = await lead();
    await expect.poll(() => told).toContain('rank 1 of 2 is ready\n');
    first.child.kill('SIGKILL');
    await first.ended;
    const second = await lead();
    await expect.poll(() => told.split('is ready\n')).toHaveLength(3);
    const ended = once(child, 'exit');
    expect(await second.stop()).toMatchObject({ code: 0, signal: null });
    expect(await ended).toEqual([0, null]);
    const lines = told.trim().split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[2]).toMatch(/^skein: the group is started again: Rank 0 of 2 is gone/);
    expect([lines[1], lines[3]]).toEqual(Array(2).fill('skein: rank 1 of 2 is ready'));
  });

  it.each([
    [['--rank', '0'], '--rank is 0, which is the server'],
    [['--rank', 'one'], '--rank is "one"; it must be a whole number.'],
    [['--rank', '2'], '--rank is 2; of 2 ranks it must be from 0 to 1.'],
    [[], '--secret-file is missing: ranks that meet at 127.0.0.1:1 must prove'],
    [['--address', 'nowhere'], '--address is "nowhere"; it must be a path with a /'],
    [['--address', 'here:99999'], '--address is "here:99999"; it must be a path with a /'],
    [['--secret-file', '/none'], 'The file of --secret-file, /none, cannot be read: there is no such file.'],
    [
      ['--pipeline-parallel-size', '3'],
      '--size is 2, but --tensor-parallel-size x --pipeline-parallel-size is 6.',
    ],
    [['--join-timeout-seconds', '0'], '--join-timeout-seconds is 0; it must be from 1 to 86400.'],
  ])('refuses %j', async (flags, message) => {
    const { code, stdout, stderr } = await runCli(['rank', engine, ...PLACE, ...flags]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(`skein: ${message}`);
  });

  it('refuses a number of ranks without saying how they share the model', async () => {
    const { code, stderr } = await runCli(['rank', engine, ...PLACE.filter((_, i) => i !== 4 && i !== 5)]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'skein: --size is 2, but neither --tensor-parallel-size nor --pipeline-parallel-size is given; give what rank 0 has.\n',
    });
  });

  it('warns of a secret that every user can read', async () => {
    const open = join(folder, 'open');
    writeFileSync(open, 'sixteen letters!');
    chmodSync(open, 0o644);
    const flags = ['--secret-file', open, '--join-timeout-seconds', '1'];
    const { stderr } = await runCli(['rank', engine, ...PLACE, ...flags]);
    expect(stderr).toContain(
      `skein: Every user of this machine can read the secret of the ranks in ${open};`,
    );
  });

  it('says when nobody has been there', async () => {
    const flags = ['--secret-file', secretFile, '--join-timeout-seconds', '1'];
    const { code, stderr } = await runCli(['rank', engine, ...PLACE, ...flags]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/127\.0\.0\.1:1.* within 1000 ms|ECONNREFUSED/s);
  });
});

describe('skein serve --ranks-address', () => {
  const options = ['--threads', '1', '--tensor-parallel-size', '2', '--ranks-address'];

  it('says whom it waits for, and ends at once with SIGTERM', async () => {
    const address = join(folder, 'nobody.sock');
    const args = [cliPath, 'serve', '--port', '0', '--model', engine, ...options, address];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let told = '';
    child.stderr.on('data', (bytes: Buffer) => (told += bytes));
    await expect.poll(() => told).toContain(`skein: waiting for rank 1 at ${address}.\n`);
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([143, null]);
    expect(told).toContain('skein: interrupted while loading\n');
  });

  it.each([
    [['foo'], '--ranks-address is "foo"; it must be a path with a /'],
    [['foo:99999'], '--ranks-address is "foo:99999"; it must be a path with a /'],
    [['foo:7000'], '--ranks-secret-file is missing: ranks that come to foo:7000 must prove'],
  ])('refuses %j', async (address, message) => {
    const { code, stderr } = await runCli(['serve', '--model', engine, ...options, ...address]);
    expect(code).toBe(2);
    expect(stderr).toContain(`skein: ${message}`);
  });

  it('says that a folder is missing, and which ranks have not come in time', async () => {
    const none = await runCli([
      'serve',
      '--port',
      '0',
      '--model',
      engine,
      ...options,
      join(folder, 'none', 's'),
    ]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain(`there is no folder ${join(folder, 'none')}.`);
    const late = [...options, join(folder, 'late.sock'), '--join-timeout-seconds', '1'];
    const { code, stderr } = await runCli(['serve', '--port', '0', '--model', engine, ...late]);
    expect(code).toBe(1);
    expect(stderr).toContain('Of 2 ranks these have not joined within 1000 ms: 1.');
  });
});
