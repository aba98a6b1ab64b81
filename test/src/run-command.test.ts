import { spawn } from 'node:child_process';
import { openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunFlags, run as runCommand } from '../../src/commands/run.js';
import { MAX_FILES, MAX_TEXT_BYTES } from '../../src/commands/run-files.js';
import { UsageError } from '../../src/errors/user-errors.js';
import { ApiKeys } from '../../src/server/web/access/api-keys.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import type { Step } from './support/fake-engine.js';
import { CTRL_C, runInTerminal } from './support/pty.js';
import { cliPath, testCacheDir, withoutLoading } from './support/skein-process.js';
import { listen, say, type ToyServer, toyServer } from './support/toy-server.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

// The model in the box, and a toy server that says what it is asked to.
let toy: ToyServer;
let url: string;
let close: () => Promise<void>;
let answers: string[] = [];

const slowly = (step: Step) => [{ waitMs: 10 }, step];

beforeAll(async () => {
  toy = toyServer(({ promptTokens }) => {
    const prompt = Buffer.from(Array.from(promptTokens).filter((token) => token < 256)).toString();
    if (prompt.includes('for ever')) return [...say('on and on').slice(0, -1), { waitMs: 600_000 }];
    if (prompt.includes('drip')) return Array.from(say('drip'.repeat(200)).slice(0, -1), slowly).flat();
    return say(answers.shift() ?? prompt);
  });
  ({ url, close } = await listen(toy));
});
afterAll(() => close());

const environment = { SKEIN_CACHE_DIR: testCacheDir };

/** Writes to stderr what a program gets by fetch, when it gets it. */
const TELLS_WHAT_COMES = `
  const ask = globalThis.fetch;
  globalThis.fetch = async (...asked) => {
    const response = await ask(...asked);
    const told = new TransformStream({
      transform(chunk, to) {
        to.enqueue(chunk);
        process.stderr.write(chunk);
      },
    });
    return new Response(response.body.pipeThrough(told), response);
  };`;
const run = (args: string[], input?: string) =>
  runCli(['run', ...args], { environment, ...(input === undefined ? {} : { input }) });
const ask = (args: string[], input?: string) => run([...args, '--url', url], input);
const prompt = () => Buffer.from(Array.from(toy.engine.requests.at(-1)!.promptTokens).slice(1)).toString();

describe('skein run with the model in the box', () => {
  it('prints a story, the same for the same seed, and what it took with --verbose', async () => {
    const args = ['Tell me a story about a cat', '--seed', '3', '--max-tokens', '40'];
    const { code, stdout, stderr } = await run([...args, '--verbose']);
    expect(stdout).toMatch(/^[A-Z].{80,}\n$/);
    const lines = stderr.trimEnd().split('\n').slice(-2);
    expect(lines[0]).toMatch(/^skein: gosling: weights bf16, native executor on /);
    expect(lines[1]).toMatch(
      /answer 40 tokens, first after \d+ ms.*finish reason length, seed 3, loaded in /,
    );
    expect(code).toBe(0);
    const again = await run([...args, '--json']);
    const { timings, ...answer } = JSON.parse(again.stdout);
    expect(answer).toEqual({
      model: 'gosling',
      text: stdout.trimEnd(),
      finishReason: 'length',
      seed: 3,
      usage: { promptTokens: expect.any(Number), cachedTokens: 0, completionTokens: 40 },
    });
    expect(Object.keys(timings)).toEqual(['loadMs', 'firstTokenMs', 'totalMs', 'tokensPerSecond']);
    expect(withoutLoading(again.stderr)).toBe('');
  });

  it('goes on with a text, up to what the context leaves', async () => {
    const { stdout, code } = await run(['--raw', '--json', '--temperature', '0', 'Once upon a time']);
    const { text, usage } = JSON.parse(stdout);
    expect(text).toMatch(/^,? there was /);
    expect(usage.completionTokens).toBeGreaterThan(16);
    expect(code).toBe(0);
  });

  it('refuses a model that is not there, an encoder, and a context that is too short, in a sentence', async () => {
    for (const [args, message, expected] of [
      [['--model', '/nowhere'], /nowhere/, 1],
      [['--max-context-tokens', '4'], /context|tokens/, 1],
    ] as const) {
      const { code, stdout, stderr } = await run(['hello', ...args]);
      expect(stderr).toMatch(message);
      expect(stderr).toMatch(/^skein: [^\n]+[.?]\n$/);
      expect([code, stdout]).toEqual([expected, '']);
    }
  });
});

describe('skein run with a server', () => {
  it('asks what the argument, the pipe, or both say, with system and settings', async () => {
    expect((await ask(['hello'])).stdout).toBe('<user>hello</><assistant>\n');
    expect((await ask([], 'piped\n')).stdout).toBe('<user>piped</><assistant>\n');
    expect((await ask(['-'], 'piped')).stdout).toBe('<user>piped</><assistant>\n');
    const both = await ask(['Sum up:', '--system', 'Be brief'], 'a text\n');
    expect(both.stdout).toBe('<system>Be brief</><user>Sum up:\n\na text</><assistant>\n');
    await ask([
      '--raw',
      'as it is',
      '--temperature',
      '0.5',
      '--top-k',
      '7',
      '--max-tokens',
      '5',
      '--seed',
      '9',
    ]);
    expect(prompt()).toBe('as it is');
    expect(toy.engine.requests.at(-1)).toMatchObject({
      maxNewTokens: 5,
      temperature: 0.5,
      topK: 7,
      seed: 9n,
    });
  });

  it('leaves out what a terminal would obey, and keeps it in JSON', async () => {
    const nasty = 'a\x1b]0;owned\x07b\x1b[2Jc\td\r\n\x9b31me\x00';
    answers = [nasty, nasty];
    expect((await ask(['x'])).stdout).toBe('a]0;ownedb[2Jc\td\n31me\n');
    const { stdout } = await ask(['x', '--json']);
    expect(JSON.parse(stdout).text).toBe(nasty);
    expect(stdout).not.toContain('\x1b');
  });

  it('Ctrl-C stops the answer: what has come stays, exit code 130', async () => {
    const terminal = runInTerminal(['run', 'for ever', '--url', url]);
    await terminal.waitFor('on and on');
    const before = toy.engine.cancelled;
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown().replaceAll('^C', '')).toBe('on and on\r\n');
    await expect.poll(() => toy.engine.cancelled).toBe(before + 1);
  });

  it('SIGTERM does, with 143, and what has come is JSON where that was asked for', async () => {
    const args = ['--import', `data:text/javascript,${encodeURIComponent(TELLS_WHAT_COMES)}`];
    const child = spawn(process.execPath, [...args, cliPath, 'run', 'for ever', '--json', '--url', url], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { out: '', err: '' };
    child.stdout.on('data', (data) => {
      output.out += data;
    });
    child.stderr.on('data', (data) => {
      output.err += data;
    });
    // A frame for each letter.
    await expect.poll(() => output.err.match(/"content":"."/g)).toHaveLength('on and on'.length);
    child.kill('SIGTERM');
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect(JSON.parse(output.out)).toMatchObject({
      text: 'on and on',
      finishReason: 'cancelled',
      usage: null,
    });
    expect(code).toBe(143);
  });

  it('a reader that goes ends it quietly, and the answer too', async () => {
    const before = toy.engine.cancelled;
    const script = `"$0" "$1" run "drip by drip" --url ${url} | head -c 2; echo " \${PIPESTATUS[0]}"`;
    const piped = spawn('bash', ['-c', script, process.execPath, cliPath], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { out: '', err: '' };
    piped.stdout.on('data', (data) => {
      output.out += data;
    });
    piped.stderr.on('data', (data) => {
      output.err += data;
    });
    await new Promise((resolve) => piped.once('close', resolve));
    expect(output).toEqual({ out: 'dr 0\n', err: '' });
    await expect.poll(() => toy.engine.cancelled).toBe(before + 1);
  });

  it('a full disk is a failure, and a server that is none, or wants a key', async () => {
    const full = spawn(process.execPath, [cliPath, 'run', 'hello', '--url', url], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    });
    let problem = '';
    full.stderr!.on('data', (data) => {
      problem += data;
    });
    expect(await new Promise((resolve) => full.once('close', resolve))).toBe(1);
    expect(problem).toBe('skein: stdout cannot be written: the disk is full.\n');

    const gone = await listen(toyServer(() => say('')));
    await gone.close();
    for (const [address, message] of [
      [gone.url, `${gone.url} cannot be reached: nothing listens there; is the server running.`],
      [`${url}/elsewhere`, 'There is no GET /elsewhere/v1/models on this server.'],
    ] as const) {
      const { code, stderr } = await run(['hello', '--url', address]);
      expect(stderr).toBe(`skein: ${message}\n`);
      expect(code).toBe(1);
    }
    const locked = await listen(
      toyServer(() => say('open'), { apiKeys: new ApiKeys([{ name: 'a', key: 'sk', weight: 1 }]) }),
    );
    const { code, stderr } = await run(['hello', '--url', locked.url]);
    expect(stderr).toMatch(
      /^skein: The server of http.* wants an API key that it knows \(--api-key, or SKEIN_API_KEY\)\.\n$/,
    );
    expect(code).toBe(1);
    expect((await run(['hello', '--url', locked.url, '--api-key', 'sk'])).stdout).toBe('open\n');
    await locked.close();
  });

  it('nothing to ask: one sentence, exit code 2', async () => {
    const { code, stdout, stderr } = await run([]);
    expect(stderr).toMatch(/^skein: There is nothing to ask; give a text[^\n]+\.\n$/);
    expect([code, stdout]).toEqual([2, '']);
  });
});

describe('skein run with files', () => {
  const folder = temporaryFolder('skein-run-files');
  const fileOf = (name: string, content: string | Uint8Array) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const PNG = Buffer.from('iVBORw0KGgo', 'base64');

  it('puts their texts before the question, each under its name', async () => {
    answers = [];
    const one = fileOf('one.txt', 'first\r\nline\n');
    const two = fileOf('two.md', Buffer.from('\ufeffhi', 'utf16le'));
    const { stdout } = await ask(['What differs?', '--file', one, '-f', two, '--raw'], 'piped');
    expect(stdout).toBe(
      'File: one.txt\n```\nfirst\nline\n```\n\nFile: two.md\n```\nhi\n```\n\nWhat differs?\n\npiped\n',
    );
  });

  it('sends pictures as such, which a model that does not see refuses', async () => {
    const picture = fileOf('goose.txt', PNG);
    const { code, stderr } = await ask(['What is it?', '--file', picture]);
    expect(stderr).toMatch(/^skein: .*picture.*\n$/);
    expect(code).toBe(1);
  });

  it.each([
    [
      'none',
      () => ['/nowhere/a.txt'],
      /^skein: --file \/nowhere\/a\.txt cannot be read: there is no such file\.\n$/,
    ],
    ['a folder', () => [folder], /cannot be read: it is a folder\.\n$/],
    ['a device', () => ['/dev/null'], /cannot be read: it is no file\.\n$/],
    [
      'a binary',
      () => [fileOf('a.bin', Uint8Array.of(1, 2, 0, 255))],
      /is neither a text in UTF-8 or UTF-16 nor a picture/,
    ],
    ['nothing', () => [fileOf('empty.txt', ' \n')], /empty\.txt is empty\.\n$/],
    [
      'too much',
      () => [fileOf('long.txt', 'a'.repeat(MAX_TEXT_BYTES + 1))],
      /have 8000001 bytes together with .*long\.txt, and may have 8000000\.\n$/,
    ],
    [
      'too many',
      () => Array.from({ length: MAX_FILES + 1 }, () => folder),
      /--file is given 33 times; a question takes 32 files at most\.\n$/,
    ],
    [
      'a picture without a chat',
      () => [fileOf('b.png', PNG), '--raw'],
      /which is seen in a chat alone; leave out --raw\.\n$/,
    ],
  ])('refuses %s', async (_, paths, message) => {
    const before = toy.engine.requests.length;
    const args = paths().flatMap((path) => (path.startsWith('--') ? [path] : ['--file', path]));
    const { code, stdout, stderr } = await ask(['What is it?', ...args]);
    expect(stderr).toMatch(message);
    expect([code, stdout, toy.engine.requests.length]).toEqual([2, '', before]);
  });
});

describe('the flags of skein run', () => {
  it.each([
    [
      'a number out of range',
      { temperature: '3' },
      /^--temperature is "3"; it must be a number from 0 to 2\.$/,
    ],
    [
      'a fraction of a token',
      { maxTokens: '1.5' },
      /^--max-tokens is "1\.5"; .*whole number of at least 1\.$/,
    ],
    ['no number', { topP: '' }, /^--top-p is ""; it must be a number from 0 to 1\.$/],
    ['an empty stop text', { stop: ['a', ''] }, /^--stop is empty; it must be a text\.$/],
    ['an address that is none', { url: 'localhost:80' }, /^--url is "localhost:80"; .*such as http:.*\.$/],
    [
      'the engine of a server',
      { url: 'http://h', weights: 'f32' },
      /^--weights is for a model that is loaded/,
    ],
    ['a key for nobody', { apiKey: 'sk' }, /^--api-key is for a server/],
    ['a system message without a chat', { raw: true, system: 'y' }, /^--system is for a chat/],
  ])('%s is refused by name', async (_, flags, message) => {
    const error = await answerOf(flags);
    expect(error).toBeInstanceOf(UsageError);
    expect((error as Error).message).toMatch(message);
  });

  const answerOf = (flags: RunFlags) => runCommand('hello', flags).catch((error: unknown) => error);
});
