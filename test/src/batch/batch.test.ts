import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { bundledChild } from '../support/bundled-child.js';
import { fakeExecutorModule, testCacheDir } from '../support/skein-process.js';
import { warmCli } from '../support/warm-cli.js';

const folder = temporaryFolder('skein-batch');
const runCli = warmCli();

const model = tinyModelPath('gqa');
let files = 0;
/** A path of its own. */
const fresh = (name: string) => join(folder, `${++files}-${name}`);

interface Line {
  custom_id: string | null;
  response: {
    status_code: number;
    request_id: string;
    warnings?: string[];
    body: Record<string, unknown>;
  } | null;
  error: { code: string; message: string; line: number } | null;
}

const linesOf = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

const ask = (custom_id: string, body: object = {}, more: object = {}) =>
  JSON.stringify({
    custom_id,
    method: 'POST',
    url: '/v1/completions',
    body: { model: 'tiny-gqa', prompt: 'ab', max_tokens: 4, temperature: 0, ignore_eos: true, ...body },
    ...more,
  });

function input(...lines: string[]): string {
  const path = fresh('in.jsonl');
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

const batch = (from: string, to: string, ...flags: string[]) =>
  runCli(['batch', from, to, '--model', model, '--cache-dir', testCacheDir, '--threads', '1', ...flags]);

describe('skein batch', () => {
  it('answers each line as the server would, chat and completions, and says so, and what of a request was changed', async () => {
    const to = fresh('out.jsonl');
    const schema = { type: 'array', uniqueItems: true, items: { type: 'string', format: 'phone' } };
    const format = { type: 'json_schema', json_schema: { name: 'n', schema } };
    const warned = ask('warned', { response_format: format, max_tokens: 5, ignore_eos: false });
    const chat = ask(
      'chat',
      {},
      {
        url: '/v1/chat/completions',
        body: {
          model: 'tiny-gqa',
          messages: [{ role: 'user', content: 'hi' }],
          max_tokens: 3,
          ignore_eos: true,
        },
      },
    );
    const { code, stdout, stderr } = await batch(
      input(ask('a'), '', chat, ask('b', { n: 2, seed: 7 }), warned),
      to,
    );
    expect(stderr).toMatch(/4 of 4/);
    expect(stdout).toMatch(/out\.jsonl: 4 answered; \d+ tokens in /);
    expect(code).toBe(0);
    const lines = new Map(linesOf(to).map((line) => [line.custom_id, line]));
    expect([...lines.keys()].sort()).toEqual(['a', 'b', 'chat', 'warned']);
    expect(lines.get('warned')!.response!.warnings).toEqual([expect.stringContaining('is not followed')]);
    expect(lines.get('a')!.response!.warnings).toBeUndefined();
    for (const { error, response } of lines.values()) {
      expect(error).toBeNull();
      expect(response!.status_code).toBe(200);
      expect(response!.request_id).toMatch(/^req-/);
    }
    expect(lines.get('chat')!.response!.body).toMatchObject({
      object: 'chat.completion',
      usage: { completion_tokens: 3 },
    });
    expect(lines.get('b')!.response!.body.choices).toHaveLength(2);
    expect(existsSync(to.replace('.jsonl', '.errors.jsonl'))).toBe(false);
  });

  it('lines that are no requests, and requests that are refused, go to the error file; the rest is answered', async () => {
    const [to, errors] = [fresh('out.jsonl'), fresh('bad.jsonl')];
    const from = input(
      ask('good'),
      'not json',
      '[]',
      '{"method": "POST"}',
      ask('get', {}, { method: 'GET' }),
      ask('elsewhere', {}, { url: '/v1/files' }),
      ask('streams', { stream: true }),
      ask('good'),
      ask('too hot', { temperature: 9 }),
      ask('extra', {}, { priority: 1 }),
      ask('of another model', { model: 'gpt-4' }),
      ask('also good\u2028 in one line'),
    );
    appendFileSync(from, Buffer.from([0x22, 0xff, 0x22, 0x0a]));
    appendFileSync(from, `${ask('long', { prompt: 'a'.repeat(3000) })}\n`);
    const { code, stdout } = await batch(
      from,
      to,
      '--error-file',
      errors,
      '--max-body-bytes',
      '2000',
      '--json',
    );
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      output: to,
      errors,
      completed: 2,
      failed: 12,
      skipped: 0,
      completionTokens: 8,
    });
    expect(
      linesOf(to)
        .map((line) => line.custom_id)
        .sort(),
    ).toEqual(['also good\u2028 in one line', 'good']);
    const bad = linesOf(errors);
    const told = bad.flatMap(({ error }) => (error === null ? [] : [[error.line, error.message] as const]));
    const messages = new Map(told);
    expect(messages.get(2)).toMatch(/^Line 2 is not JSON: /);
    expect(messages.get(3)).toMatch(/Line 3 must be an object with custom_id/);
    expect(messages.get(4)).toMatch(/has no custom_id/);
    expect(messages.get(5)).toMatch(/the method "GET"; it must be "POST"/);
    expect(messages.get(6)).toMatch(/"\/v1\/files"; it must be one of \/v1\/chat\/completions, /);
    expect(messages.get(7)).toMatch(/asks for a stream/);
    expect(messages.get(8)).toMatch(/custom_id "good" of a line before it/);
    expect(messages.get(10)).toMatch(/unknown field priority/);
    expect(messages.get(13)).toBe('Line 13 is not UTF-8.');
    expect(messages.get(14)).toBe('Line 14 is longer than 2000 bytes (--max-body-bytes).');
    const refused = new Map(
      bad.flatMap((line) => (line.response === null ? [] : [[line.custom_id, line.response]])),
    );
    expect(refused.get('too hot')).toMatchObject({
      status_code: 400,
      body: { error: { param: 'temperature' } },
    });
    expect(refused.get('of another model')).toMatchObject({ status_code: 404 });
  });

  it('asks again only what has no answer: behind a torn line, and what failed', async () => {
    const to = fresh('out.jsonl');
    const from = input(ask('a'), ask('b'), ask('c', { temperature: 9 }));
    expect((await batch(from, to)).code).toBe(3);
    const [a, b] = readFileSync(to, 'utf8').trimEnd().split('\n').sort() as [string, string];
    // The file as kill -9 leaves it when it hits in the middle of a line.
    writeFileSync(to, `${a}\n${b.slice(0, 40)}`);
    writeFileSync(from, `${readFileSync(from, 'utf8').replace('"temperature":9', '"temperature":0')}`);
    const { code, stdout } = await batch(from, to, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ completed: 2, failed: 0, skipped: 1, errors: null });
    const [first, ...others] = readFileSync(to, 'utf8').trimEnd().split('\n');
    expect(first).toBe(a);
    expect(others).toHaveLength(2);
    expect(existsSync(to.replace('.jsonl', '.errors.jsonl'))).toBe(false);
    // Nothing is left: no model is loaded for it.
    const again = await runCli(['batch', from, to, '--model', fresh('nowhere'), '--json']);
    expect(JSON.parse(again.stdout)).toMatchObject({ completed: 0, skipped: 3 });
    expect(again.code).toBe(0);
  });

  it('leaves files alone that are not its own: one sentence, exit code', async () => {
    const foreign = fresh('notes.jsonl');
    writeFileSync(foreign, '{"dear": "diary"}\n');
    const other = fresh('other.jsonl');
    expect((await batch(input(ask('x')), other)).code).toBe(0);
    const from = input(ask('a'));
    const cases: [string[], number, RegExp][] = [
      [[from, foreign], 1, /notes\.jsonl has a line 1 that is no answer of a batch; .*--restart/],
      [[from, other], 1, /other\.jsonl has the answer to "x", which .* does not ask/],
      [[from, from], 2, /is given as the input and as the output/],
      [
        [fresh('nowhere.jsonl'), fresh('out.jsonl')],
        2,
        /The batch .*nowhere\.jsonl cannot be read: there is no such file/,
      ],
      [[from, join(folder, 'nowhere', 'out.jsonl')], 1, /cannot be written: its folder is not there/],
      [[from, fresh('out.jsonl'), '--error-file', foreign], 1, /notes\.jsonl has a line 1/],
      [[from, fresh('out.jsonl'), '--concurrency', '0'], 2, /--concurrency is "0"; .*from 1 to 320/],
      [[from, fresh('out.jsonl'), '--port', '80'], 2, /Unknown option '--port'/],
    ];
    for (const [args, expected, message] of cases) {
      const { code, stderr } = await runCli(['batch', ...args, '--model', model]);
      expect(stderr).toMatch(message);
      expect(stderr).toMatch(/^skein: [^\n]+\n$/);
      expect(code).toBe(expected);
    }
    expect(readFileSync(foreign, 'utf8')).toBe('{"dear": "diary"}\n');
    const { code } = await batch(from, other, '--restart');
    expect(code).toBe(0);
    expect(linesOf(other).map((line) => line.custom_id)).toEqual(['a']);
  });
});

describe('a batch that is cut off', () => {
  const running: ChildProcess[] = [];
  afterEach(() => {
    for (const child of running.splice(0)) child.kill('SIGKILL');
  });

  /** A batch whose every iteration takes 40 ms. */
  async function slowBatch(
    from: string,
    to: string,
  ): Promise<{ child: ChildProcess; ended: Promise<[number | null, string | null]> }> {
    const script = await bundledChild(new URL('./batch-child.mjs', import.meta.url));
    const options = JSON.stringify({ model, cacheDir: testCacheDir, maxActiveRequests: 4 });
    const executor = fakeExecutorModule({ vocabSize: 320, stepMs: 40 });
    const child = spawn(process.execPath, [script, from, to, options, executor], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    running.push(child);
    return { child, ended: once(child, 'exit') as Promise<[number | null, string | null]> };
  }

  const count = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0);

  async function untilAnswers(path: string, least: number): Promise<void> {
    while (count(path) < least) await delay(10);
  }

  const ids = Array.from({ length: 24 }, (_, index) => `r${index}`);
  const many = () => input(...ids.map((id) => ask(id, { max_tokens: 8 })));

  it('by kill -9 amid the file goes on to exactly one answer for each request', async () => {
    const [from, to] = [many(), fresh('out.jsonl')];
    const first = await slowBatch(from, to);
    await untilAnswers(to, 5);
    first.child.kill('SIGKILL');
    await first.ended;
    const before = linesOf(to).length;
    expect(before).toBeLessThan(ids.length);
    const [code] = await (await slowBatch(from, to)).ended;
    expect(code).toBe(0);
    expect(
      linesOf(to)
        .map((line) => line.custom_id)
        .sort(),
    ).toEqual([...ids].sort());
  });

  it('by SIGINT drops what is under way, keeps whole lines and exits with 130', async () => {
    const [from, to] = [many(), fresh('out.jsonl')];
    const { child, ended } = await slowBatch(from, to);
    await untilAnswers(to, 3);
    child.kill('SIGINT');
    expect((await ended)[0]).toBe(130);
    const lines = linesOf(to);
    expect(lines.length).toBeLessThan(ids.length);
    for (const line of lines)
      expect(line.response!.body).toMatchObject({ choices: [{ finish_reason: 'length' }] });
    expect(existsSync(to.replace('.jsonl', '.errors.jsonl'))).toBe(false);
  });
});
