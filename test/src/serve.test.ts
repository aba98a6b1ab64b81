import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { metric } from './support/metrics.js';
import { type SkeinProcess, startFakeServer, startServer, withoutLoading } from './support/skein-process.js';
import { startedServers } from './support/started-servers.js';

const folder = temporaryFolder('skein-serve');
const started = startedServers();

const model = tinyModelPath('gqa');

let gates = 0;
/** A gate that is shut: the fake executor takes three steps, and no more until it is opened. */
function shutGate() {
  const gate = join(folder, `gate-${gates++}`);
  writeFileSync(gate, '');
  return { gate, open: () => rmSync(gate) };
}

/** A server whose every iteration takes 10 ms. What it draws depends on the prompt alone where the request is greedy. */
const slow = (
  flags: Record<string, string> = {},
  fakeOptions: Record<string, number | string> = {},
  more: Parameters<typeof startFakeServer>[2] = {},
) => started(startFakeServer({ model, ...flags }, { vocabSize: 320, stepMs: 10, ...fakeOptions }, more));

function complete(
  server: SkeinProcess,
  fields: object,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const body = { prompt: 'ab', temperature: 0, ignore_eos: true, ...fields };
  return postJson(`${server.url}/v1/completions`, body, { signal });
}

/** The text of a stream's events. */
const textIn = (events: string) =>
  events
    .split('\n')
    .flatMap((line) => /"text":"(.*?)",/.exec(line)?.[1] ?? [])
    .join('');

/** The reader of a stream of which something has come. */
async function reading(response: Response) {
  const reader = response.body!.getReader();
  await reader.read();
  return {
    reader,
    rest: async () => {
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += new TextDecoder().decode(value);
      }
    },
  };
}

const health = async (server: SkeinProcess) => (await fetch(`${server.url}/health`)).status;

describe('skein serve', () => {
  it('serves a folder that holds one GGUF, under the name of the folder', async () => {
    const one = join(folder, 'geese');
    mkdirSync(one);
    copyFileSync(join(tinyModelPath('gguf'), 'tiny-llama.gguf'), join(one, 'tiny-llama.gguf'));
    const server = await started(startServer(['--model', one]));
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map((entry) => entry.id)).toEqual(['geese']);
    expect((await complete(server, { max_tokens: 3 })).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });

  it('answers the same with a --batching-scheme as with the default one, and says how long requests waited', async () => {
    const texts: string[] = [];
    // V1 knows neither chunks nor reuse, and runs though both are on by default.
    for (const flags of [[], ['--batching-scheme', 'V1']]) {
      const server = await started(startServer(['--model', model, ...flags]));
      const response = await complete(server, { max_tokens: 8 });
      const { choices } = (await response.json()) as { choices: { text: string }[] };
      texts.push(choices[0]!.text);
      expect(await metric(server.url, 'request_queue_time_seconds_count')).toBe(1);
      expect(await metric(server.url, 'request_prefill_time_seconds_count')).toBe(1);
      expect((await server.stop()).code).toBe(0);
    }
    expect(texts[0]).not.toBe('');
    expect(new Set(texts).size).toBe(1);
  });

  it('takes a flag over a variable, that over the file, and that over the default', async () => {
    const file = join(folder, 'skein.yaml');
    writeFileSync(
      file,
      [
        `model: ${model}`,
        'served-model-name: of-the-file',
        'defaultMaxTokens: 3',
        'max-context-tokens: 100',
        'maxPromptTokens: 50',
      ].join('\n'),
    );
    const environment = {
      SKEIN_CONFIG: file,
      SKEIN_SERVED_MODEL_NAME: 'of-the-environment',
      SKEIN_MAX_CONTEXT_TOKENS: '90',
    };
    const server = await started(startServer(['--max-context-tokens', '80'], environment));
    expect(server.output().stdout).toContain('context of 80 tokens');
    const chat = await postJson(`${server.url}/v1/chat/completions`, {
      messages: [{ role: 'user', content: 'a' }],
      ignore_eos: true,
    });
    expect(await chat.json()).toMatchObject({
      model: 'of-the-environment',
      usage: { completion_tokens: 3 },
    });
    const long = await complete(server, { prompt: Array(51).fill(20) });
    expect(long.status).toBe(400);
    expect(await long.json()).toMatchObject({ error: { message: expect.stringMatching(/51.*50/) } });
    expect(server.output().stderr).not.toMatch(/\n\s+at /);
  });

  it('at SIGTERM lets a running stream end and says 503 meanwhile', async () => {
    const { gate, open } = shutGate();
    const server = await slow({ accessLog: 'true' }, { stepMs: 1, gate });
    const stream = await reading(await complete(server, { max_tokens: 150, stream: true }));
    const ended = server.stop();
    await expect.poll(() => health(server)).toBe(503);
    expect((await fetch(`${server.url}/live`)).status).toBe(200);
    for (const path of ['/v1/completions', '/tokenize']) {
      const refused = await postJson(server.url + path, { prompt: 'a' });
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ error: { code: 'server_shutting_down' } });
      // The default of --drain-timeout-seconds is 30 s.
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1);
      expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(30);
      expect(refused.headers.get('connection')).toBe('close');
    }
    open();
    expect(await stream.rest()).toMatch(/"finish_reason":"length"[\s\S]*\[DONE\]\n\n$/);
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    const lines = withoutLoading(stderr).split('\n');
    expect(lines.filter((line) => !line.startsWith('{'))).toEqual([
      'skein: finishing the answers under way; a second signal ends at once',
      '',
    ]);
    const records = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    expect(Object.keys(records.find(({ path }) => path === '/v1/completions'))).toEqual([
      ...['level', 'time', 'requestId', 'key', 'remote', 'method', 'path', 'route', 'status'],
      ...['durationMs', 'isWhole', 'msg'],
    ]);
    expect(stderr).not.toContain('"prompt"');
  });

  it('at SIGTERM cuts off what takes longer than --drain-timeout-seconds, and tells each client so', async () => {
    // One request runs, the others wait for its place.
    const { gate, open } = shutGate();
    const server = await slow({ drainTimeoutSeconds: '0', maxActiveRequests: '1' }, { stepMs: 30, gate });
    const stream = await reading(await complete(server, { max_tokens: 250, stream: true }));
    const whole = complete(server, { max_tokens: 250 });
    const waiting = complete(server, { max_tokens: 250, stream: true });
    await expect.poll(() => metric(server.url, 'num_requests_waiting')).toBe(2);
    const ended = server.stop();
    open();
    expect(await stream.rest()).toMatch(/data: \{"error":\{[^\n]*"code":"server_shutting_down"\}\}\n\n$/);
    for (const refused of [await whole, await waiting]) {
      expect(refused.status).toBe(503);
      expect(refused.headers.get('retry-after')).not.toBeNull();
      expect(await refused.json()).toMatchObject({ error: { code: 'server_shutting_down' } });
    }
    const { code, stderr } = await ended;
    expect(stderr).toMatch(/took longer than 0 s and are cut off/);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(code).toBe(0);
  });

  it('at SIGTERM does not wait for an iteration that takes too long', async () => {
    const server = await slow({ drainTimeoutSeconds: '0' }, { stepMs: 600_000 });
    const whole = complete(server, { max_tokens: 2 });
    await expect.poll(() => metric(server.url, 'num_requests_running')).toBe(1);
    const ended = server.stop();
    const refused = await whole;
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: 'server_shutting_down' } });
    expect((await ended).code).toBe(0);
  });

  it('ends at once at the second signal', async () => {
    const { gate } = shutGate();
    const server = await slow({}, { gate });
    await reading(await complete(server, { max_tokens: 250, stream: true }));
    server.child.kill('SIGINT');
    await expect.poll(() => health(server)).toBe(503);
    server.child.kill('SIGINT');
    expect(await server.ended).toMatchObject({ code: null, signal: 'SIGINT' });
  });

  it('whose engine died says so on /health, goes on with its answers when it is back, and fails what kills it', async () => {
    const deadlyToken = 32;
    const { gate, open } = shutGate();
    const restart = { workerRestart: { delayMs: 1, factor: 1 } };
    const server = await slow({}, { dieToken: deadlyToken, stepMs: 30, loadGate: gate }, restart);
    const fields = { max_tokens: 40, seed: 1 };
    const before = await (await complete(server, fields)).json();
    const streamed = await (await complete(server, { ...fields, stream: true })).text();
    const stream = await reading(await complete(server, { ...fields, stream: true }));
    const whole = complete(server, fields);
    await expect.poll(() => metric(server.url, 'num_requests_running')).toBe(2);
    const deadly = complete(server, { prompt: [deadlyToken], max_tokens: 5 });
    await expect.poll(() => health(server)).toBe(503);
    const down = await fetch(`${server.url}/health`);
    expect(await down.json()).toMatchObject({
      status: 'restarting',
      reason: expect.stringContaining('exit code 1'),
    });
    expect((await fetch(`${server.url}/live`)).status).toBe(200);
    for (const name of ['num_requests_running', 'kv_cache_usage_perc']) {
      expect(await metric(server.url, name)).toBe(0);
    }
    // Sent while no engine runs: it waits for the next one, as those do that the engine had.
    const late = complete(server, fields);
    await expect.poll(() => metric(server.url, 'num_requests_waiting')).toBe(4);
    open();
    const failed = await deadly;
    expect(failed.status).toBe(500);
    expect(await failed.json()).toMatchObject({
      error: {
        type: 'server_error',
        code: 'engine_error',
        message: expect.stringMatching(
          /^The request was begun 3 times, and its engine was lost in each of them/,
        ),
      },
    });
    for (const answer of [await whole, await late]) {
      expect(await answer.json()).toMatchObject({ choices: (before as { choices: unknown }).choices });
    }
    const rest = textIn(await stream.rest());
    expect(rest.length).toBeGreaterThan(20);
    expect(textIn(streamed).endsWith(rest)).toBe(true);
    const up = await fetch(`${server.url}/health`);
    expect([up.status, await up.json()]).toMatchObject([200, { status: 'ready', restarts: 3 }]);
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/^skein:engine_restarts_total\{[^}]*\} 3$/m);
    expect(Number(/^skein:requests_resumed_total\{[^}]*\} (\d+)$/m.exec(metrics)![1])).toBeGreaterThanOrEqual(
      5,
    );
    expect((await server.stop()).code).toBe(0);
  });

  it.each([true, false])('whose engine cannot be started again ends: --exit-on-failure %s', async (exits) => {
    const server = await slow(
      { exitOnFailure: String(exits) },
      { dieToken: 32, loads: join(folder, `loads-${exits}`) },
      { workerRestart: { delayMs: 200, factor: 1 } },
    );
    const deadly = complete(server, { prompt: [32], max_tokens: 5 });
    const waiting = complete(server, { max_tokens: 5 });
    for (const refused of [await deadly, await waiting]) {
      expect(refused.status).toBe(503);
      expect(await refused.json()).toMatchObject({ error: { code: 'engine_unavailable' } });
    }
    if (exits) {
      const { code, stderr } = await server.ended;
      expect(stderr).toMatch(/could not be started again in 5 attempts; the last one failed: load 6 fails/);
      expect(code).toBe(1);
    } else {
      const down = await fetch(`${server.url}/health`);
      expect(down.status).toBe(503);
      expect(await down.json()).toMatchObject({
        status: 'failed',
        reason: expect.stringContaining('5 attempts'),
      });
      expect((await fetch(`${server.url}/live`)).status).toBe(200);
      expect((await server.stop()).code).toBe(0);
    }
  });

  it('answers 400 to what only the engine can refuse, whole and streamed', async () => {
    // A prompt that the limit of an iteration cannot hold where prompts are not cut into chunks.
    const server = await slow({ chunkedPrefill: 'false', maxBatchTokens: '16' });
    for (const stream of [false, true]) {
      const refused = await complete(server, { prompt: Array(20).fill(20), stream });
      expect(refused.status).toBe(400);
      expect(await refused.json()).toMatchObject({
        error: {
          type: 'invalid_request_error',
          param: 'prompt',
          message: expect.stringMatching(/20 tokens.*--max-batch-tokens = 16/),
        },
      });
    }
    expect((await complete(server, { max_tokens: 2 })).status).toBe(200);
  });
});

describe('skein serve with places for sixteen requests', () => {
  let server: SkeinProcess;
  beforeAll(async () => {
    server = await startFakeServer({ model, maxActiveRequests: '16' }, { vocabSize: 320, stepMs: 10 });
  });
  afterAll(() => server?.stop());

  it('says how much of a prompt it had in the cache, in the usage and in the metrics, and nothing to another salt', async () => {
    const prompt = Array.from({ length: 40 }, (_, index) => 20 + index);
    const cached = [];
    for (const fields of [{}, {}, { cache_salt: 'mine' }]) {
      const answer = (await (await complete(server, { prompt, max_tokens: 2, ...fields })).json()) as {
        usage: { prompt_tokens_details: { cached_tokens: number } };
      };
      cached.push(answer.usage.prompt_tokens_details.cached_tokens);
    }
    expect(cached).toEqual([0, 32, 0]);
    expect(await metric(server.url, 'prefix_cache_queries_total')).toBe(120);
    expect(await metric(server.url, 'prefix_cache_hits_total')).toBe(32);
    expect(await metric(server.url, 'prompt_tokens_cached_total')).toBe(32);
  });

  it('gives all blocks back when half of 64 streams are left at random', async () => {
    const ends = await Promise.all(
      Array.from({ length: 64 }, async (_, index) => {
        const leave = new AbortController();
        const response = await complete(server, { max_tokens: 20, stream: true }, leave.signal);
        if (index % 2 === 0) return (await response.text()).endsWith('[DONE]\n\n') ? 'whole' : 'cut';
        const { reader } = await reading(response);
        for (let i = 0; i < index % 7; i++) await reader.read();
        leave.abort();
        return 'left';
      }),
    );
    expect(ends.filter((end) => end === 'whole')).toHaveLength(32);
    expect(ends).not.toContain('cut');
    for (const name of ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc']) {
      await expect.poll(() => metric(server.url, name), { message: name }).toBe(0);
    }
  });
});
