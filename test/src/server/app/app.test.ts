import { describe, expect, it, vi } from 'vitest';
import { QueueFullError } from '../../../../callbacks/token-request.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import { LiveModels } from '../../../../src/serving/model-directory.js';
import { say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'Hi' }];
const script = () => say('x');

describe('the routes about the server', () => {
  it('lists models and shows one', async () => {
    const toy = toyServer(script, { model: { id: 'org/toy' } });
    const model = {
      id: 'org/toy',
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'skein',
      root: 'org/toy',
      parent: null,
      max_model_len: 256,
      input_modalities: ['text'],
      system_fingerprints: ['fp_toy'],
    };
    expect(await (await toy.get('/v1/models')).json()).toEqual({ object: 'list', data: [model] });
    expect(await (await toy.get('/v1/models/org/toy')).json()).toEqual(model);
    expect(await (await toy.get('/v1/models/org%2Ftoy')).json()).toEqual(model);
    expect((await toy.get('/v1/models/other')).status).toBe(404);
  });

  it('answers /health, /live and /version', async () => {
    const toy = toyServer(script);
    const healthOf = async (query = '') => {
      const response = await toy.get(`/health${query}`);
      return [response.status, await response.json()];
    };
    const ready = { status: 'ready', restarts: 0 };
    expect(await healthOf()).toEqual([200, { ...ready, models: { toy: ready } }]);
    expect((await toy.get('/live')).status).toBe(200);
    expect(await (await toy.get('/version')).json()).toEqual({ version: '0.0.0-test' });
    const state = toy.state.model('toy');
    state.restart(new Error('it died'));
    const down = { status: 'restarting', reason: 'it died', restarts: 0 };
    expect(await healthOf()).toEqual([503, { ...down, models: { toy: down } }]);
    state.recover();
    expect(await healthOf()).toMatchObject([200, { status: 'ready', restarts: 1 }]);
    state.fail(new Error('the engine died'));
    const failed = { status: 'failed', reason: 'the engine died', restarts: 1 };
    expect(await healthOf()).toEqual([503, { ...failed, models: { toy: failed } }]);
    expect(await healthOf('?model=toy')).toEqual([503, failed]);
    toy.state.model('toy').executor = { name: 'wasm', fallback: 'There is no compiler.' };
    const computes = { executor: 'wasm', executorFallback: 'There is no compiler.' };
    expect(await healthOf()).toMatchObject([503, { models: { toy: computes } }]);
    expect(await healthOf('?model=toy')).toEqual([503, { ...failed, ...computes }]);
    expect((await toy.get('/health?model=other')).status).toBe(404);
    expect((await toy.get('/live?x=1')).status).toBe(200);
    expect(await healthOf('?x=1&model=toy&_=17')).toEqual([503, { ...failed, ...computes }]);
    toy.state.drain();
    expect(await healthOf()).toMatchObject([503, { status: 'draining' }]);
  });

  it('says in /health what the start still loads', async () => {
    const starting = Array.from({ length: 200 }, (_, i) => `model-${i}`);
    const models = new LiveModels();
    const toy = toyServer(script, { state: new ServerState(models, () => starting) });
    const response = await toy.get('/health');
    const body = (await response.json()) as { loading: string[] };
    expect([response.status, body]).toMatchObject([
      503,
      {
        status: 'loading',
        reason: expect.stringMatching(/^the models model-0, .* and 190 more are being loaded$/),
      },
    ]);
    expect(body.loading).toEqual(starting.slice(0, 100));
    expect((await toy.get('/live')).status).toBe(200);
  });

  it('says of a model that is not there that it may be yet to come, until the start is over', async () => {
    let starting: string[] | null = [];
    const models = new LiveModels();
    const state = new ServerState(models, () => starting, 'workers are being looked for');
    const toy = toyServer(script, { state });
    const body = { model: 'other', messages: [{ role: 'user', content: 'a' }] };
    const message = 'The server is not ready yet: workers are being looked for.';
    for (const path of ['/v1/chat/completions', '/v1/messages', '/api/chat']) {
      const response = await toy.post(path, path === '/v1/messages' ? { ...body, max_tokens: 1 } : body);
      expect([response.status, response.headers.get('retry-after')], path).toEqual([503, '2']);
      expect(await response.text()).toContain(message);
    }
    starting = null;
    expect((await toy.post('/v1/chat/completions', body)).status).toBe(404);
  });

  it("has OpenAI's error shape for unknown paths and wrong methods", async () => {
    const toy = toyServer(script);
    const missing = await toy.get('/v1/nothing');
    expect(missing.status).toBe(404);
    expect(await missing.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'not_found' },
    });
    const wrong = await toy.get('/v1/chat/completions');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('POST');
    expect(await wrong.json()).toMatchObject({ error: { code: 'method_not_allowed' } });
  });
});

describe('the log', () => {
  function logged(faulty: typeof script = script) {
    const lines: [string, Record<string, unknown>][] = [];
    const writer = (level: string) => (fields: object) => lines.push([level, fields as never]);
    const log = {
      debug: writer('debug'),
      info: writer('info'),
      warn: writer('warn'),
      error: writer('error'),
    };
    return { toy: toyServer(faulty, { log }), lines };
  }

  it('has a line for each request, those of probes at a level below', async () => {
    const { toy, lines } = logged();
    await toy.post('/v1/chat/completions', { messages }, { headers: { 'x-request-id': 'mine' } });
    for (const path of ['/health', '/live', '/metrics', '/v1/models']) await toy.get(path);
    expect(lines.map(([level, { path }]) => [level, path])).toEqual([
      ['info', '/v1/chat/completions'],
      ['debug', '/health'],
      ['debug', '/live'],
      ['debug', '/metrics'],
      ['info', '/v1/models'],
    ]);
    expect(lines[0]![1]).toMatchObject({ requestId: 'mine', method: 'POST', status: 200 });
    // Without the noise of binary fractions.
    for (const [, { durationMs }] of lines) expect(String(durationMs)).toMatch(/^\d+(\.\d{1,3})?$/);
  });

  it('of access may be a log of its own, which knows the key but no text', async () => {
    const lines: Record<string, unknown>[] = [];
    const accessLog = {
      debug: () => {},
      info: (fields: object) => lines.push(fields as never),
      warn: () => {},
      error: () => {},
    };
    const apiKeys = new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]);
    const toy = toyServer(script, { accessLog, apiKeys });
    const headers = { 'x-api-key': 'sesame', 'x-request-id': 'r1' };
    await toy.post('/v1/chat/completions?x=secret', { messages }, { headers });
    await toy.get('/v1/models');
    const { durationMs, firstTokenMs, ...rest } = lines[0]!;
    expect([typeof durationMs, typeof firstTokenMs]).toEqual(['number', 'number']);
    expect(rest).toEqual({
      requestId: 'r1',
      key: 'ali',
      remote: '',
      method: 'POST',
      path: '/v1/chat/completions',
      route: '/v1/chat/completions',
      status: 200,
      model: 'toy',
      promptTokens: 23,
      cachedTokens: 0,
      completionTokens: 1,
      finishReason: 'stop',
      isWhole: true,
    });
    expect(lines[1]).toMatchObject({ key: '', status: 401 });
    expect(lines[1]).not.toHaveProperty('model');
  });

  it('and a header say where a prompt parts from an earlier one, and what it repeats', async () => {
    const room = { maxInputLen: 4000, maxSeqLen: 5000 };
    const lines: Record<string, unknown>[] = [];
    const write = () => {};
    const info = (fields: object) => lines.push(fields as never);
    const toy = toyServer(script, {
      model: room,
      accessLog: { debug: write, warn: write, error: write, info },
    });
    const rules = Array.from({ length: 200 }, (_, i) => `rule ${i * 7919}`).join(' ');
    const ask = (time: string) =>
      toy.post('/v1/chat/completions', {
        messages: [
          { role: 'system', content: `It is ${time}. ${rules}` },
          { role: 'user', content: 'Hi' },
        ],
      });
    expect((await ask('12:31')).headers.get('x-skein-prompt-parted')).toBeNull();
    const told = /^at=(\d+); tokens=(\d+); repeated=(\d+)$/.exec(
      (await ask('12:34')).headers.get('x-skein-prompt-parted')!,
    )!;
    const [at, tokens, repeated] = told.slice(1).map(Number);
    expect(lines[0]).not.toHaveProperty('partedAt');
    expect(lines[1]).toMatchObject({ partedAt: at, promptTokens: tokens, repeatedTokens: repeated });
    expect(at).toBeLessThan(40);
    expect(repeated).toBeGreaterThan(tokens! - 100);
  });

  it('of access adds up what is computed for one request, a prompt of several answers once', async () => {
    const { toy, lines } = logged(() => [...say('abc').slice(0, -1), { finish: 'length' }]);
    await toy.post('/v1/completions', { prompt: ['one', 'three'], n: 2 });
    expect(lines[0]![1]).toMatchObject({ promptTokens: 10, completionTokens: 12, finishReason: 'length' });
    const refused = await toy.post('/v1/completions', { prompt: 'x'.repeat(1000) });
    expect([refused.status, lines[1]![1].promptTokens]).toEqual([400, undefined]);
  });

  it('has errors of the engine, and no refusals', async () => {
    const { toy, lines } = logged(() => [{ error: new Error('the cause') }] as never);
    await toy.post('/v1/chat/completions', { messages });
    await toy.post('/v1/chat/completions', { messages: [] });
    toy.state.drain();
    expect((await toy.post('/v1/chat/completions', { messages })).status).toBe(503);
    const errors = lines.filter(([level]) => level === 'error');
    expect(errors).toHaveLength(1);
    expect(errors[0]![1]).toMatchObject({ err: new Error('the cause') });
  });
});

describe('API keys', () => {
  const apiKeys = new ApiKeys([
    { name: 'ali', key: 'sesame', weight: 1 },
    { name: 'baba', key: 'thistle', weight: 2 },
  ]);
  const toy = toyServer(script, { apiKeys });

  it('are taken as Bearer and as X-Api-Key', async () => {
    for (const headers of [{ authorization: 'Bearer sesame' }, { 'x-api-key': 'thistle' }]) {
      expect((await toy.post('/v1/chat/completions', { messages }, { headers })).status).toBe(200);
    }
  });

  it('are asked for on every route but /health and /live', async () => {
    for (const path of ['/v1/models', '/metrics', '/version', '/v1/nothing']) {
      const response = await toy.get(path);
      expect(response.status, path).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_api_key' } });
    }
    const wrong = await toy.get('/v1/models', { headers: { authorization: 'Bearer sesam' } });
    expect(wrong.status).toBe(401);
    expect((await toy.get('/health')).status).toBe(200);
    expect((await toy.get('/live')).status).toBe(200);
  });

  it('do not stand in the way of a preflight', async () => {
    const response = await toy.app.request('/v1/chat/completions', {
      method: 'OPTIONS',
      headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:3000');
  });

  it('go with each request to the queue, with their weights', async () => {
    await toy.post('/v1/chat/completions', { messages }, { headers: { 'x-api-key': 'thistle' } });
    expect(toy.engine.requests.at(-1)).toMatchObject({ queueKey: 'baba', queueWeight: 2 });
  });
});

describe('limits of a request', () => {
  it('a body that is too long is refused with 413, whether its length is told or not', async () => {
    const toy = toyServer(script, { maxBodyBytes: 2000 });
    const long = { messages: [{ role: 'user', content: 'x'.repeat(3000) }] };
    const chunked = () =>
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode('x'.repeat(500)));
        },
      });
    const told = await toy.post('/v1/chat/completions', long, { headers: { 'content-length': '3080' } });
    const streamed = await toy.app.request('/v1/chat/completions', {
      method: 'POST',
      body: chunked(),
      duplex: 'half',
    } as RequestInit);
    for (const response of [told, streamed]) {
      expect(response.status).toBe(413);
      const { error } = (await response.json()) as { error: object };
      expect(error).toMatchObject({ message: 'The body is longer than 2000 bytes.', code: 'body_too_large' });
    }
  });

  it('the time limit of the server counts where a request asks for no shorter one', async () => {
    const toy = toyServer(script, { requestTimeoutMs: 5000 });
    for (const fields of [{}, { time_limit_ms: 100 }, { time_limit_ms: 60_000 }]) {
      await toy.post('/v1/chat/completions', { messages, ...fields });
    }
    expect(toy.engine.requests.map(({ timeLimitMs }) => timeLimitMs)).toEqual([5000, 100, 5000]);
  });

  it('Retry-After says how long the queue will take, between 1 and 30 seconds', async () => {
    const waits = [null, 200, 4200, 90_000];
    const engine = {
      submit: () => {
        throw new QueueFullError(3, { retryAfterMs: waits.shift()! });
      },
    };
    const toy = toyServer(script, { model: { engine } });
    const seen: (string | null)[] = [];
    for (let i = 0; i < 4; i++) {
      const response = await toy.post('/v1/chat/completions', { messages, stream: true });
      expect(response.status).toBe(429);
      expect(response.headers.get('content-type')).toBe('application/json');
      seen.push(response.headers.get('retry-after'));
    }
    expect(seen).toEqual(['1', '1', '5', '30']);
  });
});

describe('Retry-After while the server shuts down', () => {
  it.each([
    [undefined, '1'],
    [0, '1'],
    [4_200, '5'],
    [600_000, '30'],
  ])('with %s ms left is %s', async (limitMs, seconds) => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const toy = toyServer(script);
      toy.state.drain(limitMs);
      for (const path of ['/v1/chat/completions', '/tokenize']) {
        const refused = await toy.post(path, { messages });
        expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, seconds]);
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it('becomes less', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const toy = toyServer(script);
      toy.state.drain(20_000);
      vi.advanceTimersByTime(12_000);
      const refused = await toy.post('/v1/chat/completions', { messages });
      expect(refused.headers.get('retry-after')).toBe('8');
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('X-Request-Id', () => {
  it("is the client's, or a new one, on answers, streams and errors", async () => {
    const toy = toyServer(script);
    const headers = { 'x-request-id': 'mine-1' };
    const answers = [
      await toy.post('/v1/chat/completions', { messages }, { headers }),
      await toy.post('/v1/chat/completions', { messages, stream: true }, { headers }),
      await toy.post('/v1/chat/completions', { messages: 5 }, { headers }),
      await toy.get('/v1/nothing', { headers }),
    ];
    for (const answer of answers) expect(answer.headers.get('x-request-id')).toBe('mine-1');
    const ids = [await toy.get('/live'), await toy.get('/live')].map((one) =>
      one.headers.get('x-request-id'),
    );
    expect(ids[0]).toMatch(/^req-/);
    expect(ids[0]).not.toBe(ids[1]);
    const long = await toy.get('/live', { headers: { 'x-request-id': 'x'.repeat(1000) } });
    expect(long.headers.get('x-request-id')).toMatch(/^req-/);
  });
});

describe('/metrics', () => {
  /** Sample values by name with labels. */
  async function scrape(toy: ReturnType<typeof toyServer>): Promise<Map<string, number>> {
    const text = await (await toy.get('/metrics')).text();
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  }

  it("has vLLM's names with the counts of what was served", async () => {
    const toy = toyServer(() => say('abcd'));
    await (await toy.post('/v1/completions', { prompt: 'xyz', max_tokens: 9 })).text();
    await (await toy.post('/v1/completions', { prompt: 'xyz', max_tokens: 9, stream: true })).text();
    await toy.post('/v1/completions', { prompt: 5 });
    const samples = await scrape(toy);
    const labels = 'model_name="toy",engine="0"';
    expect(samples.get(`vllm:prompt_tokens_total{${labels}}`)).toBe(8);
    expect(samples.get(`vllm:generation_tokens_total{${labels}}`)).toBe(8);
    expect(samples.get(`vllm:request_success_total{${labels},finished_reason="stop"}`)).toBe(2);
    expect(samples.get(`vllm:time_to_first_token_seconds_count{${labels}}`)).toBe(2);
    expect(samples.get(`vllm:inter_token_latency_seconds_count{${labels}}`)).toBe(6);
    expect(samples.get(`vllm:e2e_request_latency_seconds_count{${labels}}`)).toBe(2);
    expect(samples.get(`vllm:request_generation_tokens_sum{${labels}}`)).toBe(8);
    expect(samples.get(`vllm:request_max_num_generation_tokens_sum{${labels}}`)).toBe(18);
    expect(samples.get(`vllm:num_requests_running{${labels}}`)).toBe(0);
    expect(samples.get(`vllm:kv_cache_usage_perc{${labels}}`)).toBe(0);
    const http = (status: string) =>
      `http_requests_total{handler="/v1/completions",method="POST",status="${status}"}`;
    expect(samples.get(http('2xx'))).toBe(2);
    expect(samples.get(http('4xx'))).toBe(1);
    const exactly = 'skein:http_responses_total{handler="/v1/completions",status="400"}';
    expect(samples.get(exactly)).toBe(1);
    const refusals = [...samples].filter(([name]) =>
      name.startsWith('skein:requests_refused_total{code="invalid_'),
    );
    expect(refusals.map(([, count]) => count)).toEqual([1]);
    expect(samples.has(`vllm:time_to_first_token_seconds_bucket{le="2560.0",${labels}}`)).toBe(true);
  });

  it("has the engine's times of each request: in the queue, in its context, and from there to its end", async () => {
    const counts = { numIterations: 4, numPauses: 0, reusedBlocks: 0, missedBlocks: 0 };
    const timing = { firstScheduledMs: 2000, firstTokenMs: 2500, lastTokenMs: 5000, ...counts };
    const waited = { firstScheduledMs: null, firstTokenMs: null, lastTokenMs: null, ...counts };
    const toy = toyServer((_, index) => [
      { tokens: [97, 98] },
      { finish: 'length', timing: index === 0 ? timing : waited },
    ]);
    for (let i = 0; i < 2; i++) {
      await (await toy.post('/v1/completions', { prompt: 'xyz', max_tokens: 2 })).text();
    }
    const samples = await scrape(toy);
    const of = (name: string) => {
      const labels = '{model_name="toy",engine="0"}';
      return ['count', 'sum'].map((part) =>
        samples.get(`vllm:request_${name}_time_seconds_${part}${labels}`),
      );
    };
    expect(of('queue')).toEqual([1, 2]);
    expect(of('prefill')).toEqual([1, 0.5]);
    expect(of('inference')).toEqual([1, 3]);
  });

  it('counts unknown paths under one name', async () => {
    const toy = toyServer(script);
    for (const path of ['/a', '/b', '/v1/models/x', '/v1/models/y']) await toy.get(path);
    const samples = await scrape(toy);
    expect(samples.get('http_requests_total{handler="unmatched",method="GET",status="4xx"}')).toBe(2);
    expect(samples.get('http_requests_total{handler="/v1/models/{id}",method="GET",status="4xx"}')).toBe(2);
  });
});
