import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SkeinProcess, startServer, testCacheDir } from './src/support/skein-process.js';
import { readFrames } from './src/support/toy-server.js';
import { repository } from './support/documents.js';
import { postJson } from './support/post-json.js';
import { describeWithTestEncoder, testEncoderPath } from './support/test-encoder.js';

// The programs run as a reader runs them, with the model that comes with the package. (npm run typecheck checks their
// types.)
const env = { PATH: process.env.PATH, HOME: process.env.HOME, SKEIN_CACHE_DIR: testCacheDir, PORT: '0' };
/** The demo model draws its tokens: one answer in some hundreds is a greeting of 27 characters and no story. */
const aStory = /^[A-Z ][\s\S]{20,}/;
const story = { messages: [{ role: 'user', content: 'Tell me a story about a cat' }] };

function start(example: string, args: readonly string[] = [], own: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(process.execPath, [join(repository, 'examples', example), ...args], {
    env: { ...env, ...own },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function outputOf(child: ChildProcess) {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'close'),
  ]);
  return { stdout, stderr, code };
}

it('are all in their table', () => {
  const table = readFileSync(join(repository, 'examples/README.md'), 'utf8');
  for (const name of readdirSync(join(repository, 'examples'))) {
    if (name !== 'README.md') expect(table).toContain(`| [${name}${name.includes('.') ? '' : '/'}](${name}`);
  }
});

describe.each(['express.mjs', 'hono.mjs'])('%s', (example) => {
  let child: ChildProcess;
  let url: string;
  beforeAll(async () => {
    child = start(example);
    url = await new Promise<string>((resolve, reject) => {
      let line = '';
      child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
        line += chunk;
        const found = /^POST (\S+)\n/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('exit', () => reject(new Error(`${example} ended before it listened.`)));
    });
  });
  afterAll(() => void child.kill('SIGKILL'));

  it('streams an answer in several pieces', async () => {
    const response = await postJson(url, story);
    expect(response.status).toBe(200);
    let pieces = 0;
    let answer = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      pieces += 1;
      answer += chunk;
    }
    expect(pieces).toBeGreaterThan(3);
    if (example === 'hono.mjs') {
      const data = answer.trim().split('\n\n');
      expect(data.at(-1)).toBe('data: [DONE]');
      answer = data
        .slice(0, -1)
        .map((frame) => JSON.parse(frame.slice(6)) as string)
        .join('');
    }
    expect(answer).toMatch(aStory);
  });

  it('refuses what cannot be answered with a status and a sentence', async () => {
    for (const body of ['{"messages": 5}', '{}', '{"mess']) {
      const response = await postJson(url, body);
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({ error: expect.stringMatching(/\S/) });
    }
  });

  it('survives clients that leave in the middle, and ends on SIGTERM', async () => {
    const leaving = Array.from({ length: 8 }, async () => {
      const gone = new AbortController();
      const response = await postJson(url, story, { signal: gone.signal });
      await response.body!.getReader().read();
      gone.abort();
    });
    await Promise.all(leaving);
    const response = await postJson(url, story);
    expect(await response.text()).toMatch(example === 'hono.mjs' ? /data: \[DONE\]\n\n$/ : aStory);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});

describe.each(['api/express.mjs', 'api/hono.mjs'])('%s', (example) => {
  let child: ChildProcess;
  let client: OpenAI;
  beforeAll(async () => {
    child = start(example);
    const [line] = (await once(child.stdout!.setEncoding('utf8'), 'data')) as [string];
    const baseURL = /^API at (\S+)\n/.exec(line)![1]!;
    client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(() => void child.kill('SIGKILL'));

  it('answers and streams to a client of OpenAI, and refuses in its words', async () => {
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['gosling']);
    const asked = { model: 'gosling', ...(story as { messages: [{ role: 'user'; content: string }] }) };
    const whole = await client.chat.completions.create({ ...asked, max_tokens: 40 });
    expect(whole.choices[0]!.message.content).toMatch(aStory);
    let pieces = 0;
    for await (const _ of await client.chat.completions.create({ ...asked, max_tokens: 40, stream: true }))
      pieces++;
    expect(pieces).toBeGreaterThan(3);
    const error = await client.chat.completions
      .create({ ...asked, temperature: 9 })
      .catch((reason) => reason);
    expect(error).toMatchObject({ status: 400, param: 'temperature' });
    const root = new URL('/', client.baseURL);
    expect(await (await fetch(root)).text()).toBe('The API is at /llm/v1.');
    expect((await fetch(new URL('/llm/nothing', root))).status).toBe(404);
  });
});

describe('the routes of next/', () => {
  it('answer the whole API', async () => {
    process.env.MODEL = join(repository, 'models/demo/gosling');
    process.env.SKEIN_CACHE_DIR = testCacheDir;
    const { GET, POST } = await import('../examples/next/app/llm/[...path]/route.js');
    const models = await GET(new Request('http://localhost/llm/v1/models'));
    expect(await models.json()).toMatchObject({ data: [{ id: 'gosling' }] });
    const body = JSON.stringify({ model: 'gosling', max_tokens: 40, ...story });
    const headers = { 'content-type': 'application/json' };
    const answer = await POST(
      new Request('http://localhost/llm/v1/chat/completions', { method: 'POST', headers, body }),
    );
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: expect.stringMatching(aStory) } }],
    });
    const shared = globalThis as { skein?: Promise<import('skein').Skein> };
    await (await shared.skein!).close();
    delete shared.skein;
  });
});

describe('the route handler of next/', () => {
  // The type that `next build` checks a route's exports against, its RouteHandlerConfig, as far as this route has them.
  interface RouteHandlerConfig {
    POST?: (request: Request, context: { params: Promise<object> }) => Promise<Response> | Response;
    runtime?: 'nodejs' | 'edge' | 'experimental-edge';
    dynamic?: 'auto' | 'error' | 'force-static' | 'force-dynamic';
  }

  it('streams an answer, and refuses what cannot be answered', async () => {
    process.env.MODEL = join(repository, 'models/demo/gosling');
    process.env.SKEIN_CACHE_DIR = testCacheDir;
    const route = (await import('../examples/next/app/api/chat/route.js')) satisfies RouteHandlerConfig;
    const { POST } = route;
    expect([route.runtime, route.dynamic]).toEqual(['nodejs', 'force-dynamic']);
    const request = (body: string) =>
      new Request('http://localhost/api/chat', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      });
    const refused = await POST(request('{"messages": 5}'));
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: expect.stringContaining('messages is 5') },
    ]);
    const answer = await POST(request(JSON.stringify(story)));
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await answer.text()).toMatch(aStory);
    const left = await POST(request(JSON.stringify(story)));
    const reader = left.body!.getReader();
    await reader.read();
    await reader.cancel();
    const { skein } = globalThis as { skein?: Promise<import('skein').Skein> };
    await (await skein!).close(); // hangs if the request that was left were not ended
  });
});

describeWithTestEncoder('search/', () => {
  it.each([
    [
      'search/pgvector.mjs',
      '6 of 6\n',
      /^0\.\d{3} {2}Keepers feed the lions[^\n]*\n(0\.\d{3} {2}[^\n]+\n){2}$/,
    ],
    ['search/langchain.mjs', '', /^Keepers feed the lions[^\n]*\n$/],
    ['search/llamaindex.mjs', '', /^0\.\d{3} {2}Keepers feed the lions[^\n]*\n$/],
  ])('%s finds a text by what it means', async (example, progress, found) => {
    const ended = await outputOf(start(example, [], { MODEL: testEncoderPath! }));
    expect(ended).toMatchObject({ code: 0, stderr: progress, stdout: expect.stringMatching(found) });
  });
});

it('queue.mjs answers every job', async () => {
  const prompts = Array.from({ length: 12 }, (_, index) => `Once upon a time number ${index}`);
  const { stdout, stderr, code } = await outputOf(start('queue.mjs', prompts));
  expect([stderr, code]).toEqual(['', 0]);
  const jobs = Array.from(stdout.matchAll(/^job (\d+): "[^\n]{20,}"$/gm), (match) => Number(match[1]));
  expect(jobs.sort((a, b) => a - b)).toEqual(prompts.map((_, index) => index + 1));
});

it('queue.mjs gives a job that fails three tries, and says why', async () => {
  const { stdout, stderr, code } = await outputOf(
    start('queue.mjs', ['word '.repeat(5000), 'Once upon a time']),
  );
  expect(stderr.match(/^job 1: .*maxInputLen.* It is tried again\.$/gm)).toHaveLength(2);
  expect(stderr.match(/^job 1: /gm)).toHaveLength(3);
  expect(stdout).toMatch(/^job 2: ".*"\n$/);
  expect(code).toBe(0);
});

it('post-processor/ tells a story without the letter e', async () => {
  const { stdout, stderr, code } = await outputOf(start('post-processor/main.mjs'));
  expect([stderr, code]).toEqual(['', 0]);
  const [, free, without] = /^With: {4}(\S[\s\S]+)\n\nWithout: (\S[\s\S]+)\n$/.exec(stdout)!;
  expect(free).toMatch(/e/i);
  expect(without).toMatch(/^[^e]{60,}$/i);
});

it('batched-service/ gives each caller its own result', async () => {
  const { stdout, stderr, code } = await outputOf(start('batched-service/main.mjs'));
  expect([stderr, code]).toEqual(['', 0]);
  expect(stdout).toMatch(/^10 one after the other: [\d.]+ s\n880 at once: [\d.]+ s\n/);
  expect(stdout).toMatch(/\nEvery caller has its own result\.\n$/);
});

describe('frames/', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer(['--model-repository', join(repository, 'examples/frames/models')]);
  });
  afterAll(() => server?.stop());

  it('gets an answer for each picture of a folder, in order', async () => {
    const { stdout, stderr, code } = await outputOf(start('frames/main.mjs', [server.url]));
    expect([stderr, code]).toEqual(['', 0]);
    // A square of 5 by 5 pixels moves by 4 and 3; 25 of 3072 pixels have 250, the others 20.
    const lines = Array.from({ length: 12 }, (_, i) => {
      const name = `frame-${String(i).padStart(2, '0')}.pgm`;
      return `${name}: the spot is at ${4 * i + 2}, ${3 * i + 2}; mean brightness 21.9`;
    });
    expect(stdout.trim().split('\n')).toEqual(lines);
  });

  it('says so where there is no such model', async () => {
    const { stderr, code } = await outputOf(start('frames/main.mjs', [`${server.url}/nowhere`]));
    expect([code, stderr]).toEqual([1, expect.stringContaining("opens no WebSocket for the model 'spot'")]);
  });
});

describe('stats.mjs', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startServer(['--api-key', 'secret']);
  });
  afterAll(() => server?.stop());

  it('prints what a server does while it answers', async () => {
    const child = start('stats.mjs', [server.url, 'secret']);
    const lines: string[] = [];
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => lines.push(chunk));
    await expect.poll(() => lines.join('')).toContain('formation: none; 0 queued');
    const headers = {
      'content-type': 'application/json',
      authorization: 'Bearer secret',
      'x-request-id': 'cat',
    };
    const body = JSON.stringify({ ...story, stream: true, max_tokens: 900, ignore_eos: true });
    // Events come a few times a second, and a story may be reported between two of them.
    const wanted = [
      /^formation: cat (context|generating) \(\d+ tokens\); 0 queued$/m,
      /^iteration \d+: 1 active, \d+ of \d+ blocks held$/m,
    ];
    while (!wanted.every((line) => line.test(lines.join('')))) {
      const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body });
      await readFrames(response);
    }
    child.kill();
  });

  it('says why where it may not', async () => {
    const { stderr, code } = await outputOf(start('stats.mjs', [server.url, 'wrong']));
    expect(stderr).toContain(`${server.url} answered 401`);
    expect(code).toBe(1);
  });
});
