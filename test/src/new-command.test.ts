import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { repository } from '../support/documents.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { testCacheDir } from './support/skein-process.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();
const folder = temporaryFolder('skein-new');
const programs = ['chat', 'server', 'rag'];
const env = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  SKEIN_CACHE_DIR: testCacheDir,
  MODEL: join(repository, 'models/demo/gosling'),
  ENCODER: tinyModelPath('bert-mean'),
  PORT: '0',
};

// The packages that npm install would put there.
beforeAll(async () => {
  const modules = join(folder, 'node_modules');
  mkdirSync(modules);
  symlinkSync(repository, join(modules, 'skein'));
  for (const name of ['zod', '@types'])
    symlinkSync(join(repository, 'node_modules', name), join(modules, name));
  for (const name of programs) {
    const made = await runCli(['new', name, join(folder, name)]);
    expect(made).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('npm install && npm start'),
    });
  }
});

/** Starts a program as `npm start` does. */
function start(name: string, args: readonly string[] = []) {
  const tsx = join(repository, 'node_modules/tsx/dist/cli.mjs');
  return spawn(process.execPath, [tsx, 'main.ts', ...args], { cwd: join(folder, name), env });
}

async function endOf(child: ReturnType<typeof start>) {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { stdout, stderr, code };
}

describe('skein new', () => {
  it('writes programs of about 60 lines, with their manifests', () => {
    for (const name of programs) {
      const lines = readFileSync(join(folder, name, 'main.ts'), 'utf8').split('\n').length;
      expect(lines).toBeLessThan(75);
      const manifest: unknown = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'));
      expect(manifest).toMatchObject({
        name,
        type: 'module',
        scripts: { start: 'tsx main.ts' },
        dependencies: { skein: `file:${repository.replace(/\/$/, '')}`, zod: expect.stringMatching(/^\^4/) },
        devDependencies: { tsx: expect.any(String), typescript: expect.any(String) },
      });
    }
  });

  it('refuses what there is not, and a folder with files, with 2', async () => {
    const unknown = await runCli(['new', 'agent', join(folder, 'agent')]);
    expect(unknown).toMatchObject({ code: 2, stdout: '' });
    expect(unknown.stderr).toBe(
      "skein: There is no program 'agent' to begin with; there are: chat, server, rag.\n",
    );
    const full = await runCli(['new', 'chat', join(folder, 'chat')]);
    expect(full).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/chat is not empty: it has main\.ts/),
    });
    writeFileSync(join(folder, 'file'), '');
    const file = await runCli(['new', 'chat', join(folder, 'file')]);
    expect(file).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be written') });
  });

  it('has types that are right, by the tsconfig.json of each', async () => {
    const tsc = join(repository, 'tools/tsc.mjs');
    for (const name of programs) {
      const run = promisify(execFile)(process.execPath, [tsc, '-p', join(folder, name)], { cwd: folder });
      expect(await run.catch((error: unknown) => error)).toMatchObject({ stdout: '', stderr: '' });
    }
  });
});

describe('its programs', () => {
  it('chat answers, keeps what was said, and goes on with it', async () => {
    for (const turns of [1, 2]) {
      const child = start('chat');
      child.stdin.end('Tell me a story about a cat\n\n');
      const { stdout, stderr, code } = await endOf(child);
      expect([stderr, code]).toEqual(['', 0]);
      expect(stdout).toMatch(/^gosling is ready\..*\n> [\s\S]{20,}\n> $/);
      // A first answer that was drawn long leaves no room for the second one.
      const [, leftOut = 0] = /\[(\d+) messages are forgotten\]/.exec(stdout) ?? [];
      const saved = JSON.parse(readFileSync(join(folder, 'chat/chat.json'), 'utf8')) as {
        messages: object[];
      };
      expect(saved.messages).toHaveLength(1 + 2 * turns - Number(leftOut));
    }
  });

  it('server streams answers, has the API, refuses in a sentence and ends on SIGTERM', async () => {
    const child = start('server');
    const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    const url = line.trim();
    const answer = await postJson(`${url}/ask`, { question: 'Tell me a story about a cat' });
    expect([answer.status, (await answer.text()).length > 20]).toEqual([200, true]);
    for (const body of ['{"question": 5}', '{"ques', JSON.stringify({ question: 'x'.repeat(200_000) })])
      expect((await postJson(`${url}/ask`, body)).status).toBe(400);
    const models = await fetch(`${url}/llm/v1/models`);
    expect(await models.json()).toMatchObject({ data: [{ id: 'gosling' }] });
    expect((await fetch(url)).status).toBe(404);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it('rag answers from the nearest passages', async () => {
    const { stdout, stderr, code } = await endOf(start('rag', ['texts', 'When does the zoo open?']));
    expect([stderr, code]).toEqual(['3 of 3 passages\n', 0]);
    expect(stdout).toMatch(/\(nearest: [\w., ]+; named: .*\)\n$/);
  });
});
