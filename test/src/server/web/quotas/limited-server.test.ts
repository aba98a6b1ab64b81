import { afterAll, describe, expect, it } from 'vitest';
import { type ApiKey, ApiKeys } from '../../../../../src/server/web/access/api-keys.js';
import { OwnQuotaRecords } from '../../../../../src/server/web/quotas/quota-records.js';
import { Quotas } from '../../../../../src/server/web/quotas/quotas.js';
import { durationText } from '../../../../../src/server/web/quotas/rate-limit-headers.js';
import type { Script } from '../../../support/fake-engine.js';
import { ServedEncoders } from '../../../support/served-encoders.js';
import { say, toyServer } from '../../../support/toy-server.js';

/** Records by a clock that stands at 15 seconds of a minute until a test moves it. */
class StandingRecords extends OwnQuotaRecords {
  ms = 1_000 * 86_400_000 + 15_000;
  override nowMs(): number {
    return this.ms;
  }
}

const KEYS: readonly ApiKey[] = [
  { name: 'alice', key: 'sk-alice', weight: 1, limits: { tokens_per_minute: 40, requests_per_minute: 3 } },
  { name: 'bob', key: 'sk-bob', weight: 1 },
  { name: 'root', key: 'sk-root', weight: 1, admin: true },
];

function limited(script: Script = () => say('hi'), more: Parameters<typeof toyServer>[1] = {}) {
  const records = new StandingRecords();
  const quotas = new Quotas(records);
  const server = toyServer(script, { apiKeys: new ApiKeys(KEYS), quotas, ...more });
  server.metrics.watchKeys(quotas);
  const as = (name: string) => ({ headers: { authorization: `Bearer sk-${name}` } });
  /** 5 tokens of the prompt, the first one its beginning, 2 of the answer, 10 at most. */
  const complete = (name: string, fields: object = {}) =>
    server.post('/v1/completions', { prompt: 'abcd', max_tokens: 10, ...fields }, as(name));
  const usage = async (name: string) =>
    ((await (await server.get('/usage', as(name))).json()) as { data: Record<string, unknown>[] }).data;
  return { ...server, records, as, complete, usage };
}

const limitsIn = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name.includes('ratelimit') || name === 'retry-after'));

describe('a key with limits', () => {
  it('is told what is left with each answer, where what was not used has come back', async () => {
    const { complete } = limited();
    const answer = await complete('alice');
    expect(answer.status).toBe(200);
    expect(limitsIn(answer)).toEqual({
      'x-ratelimit-limit-requests': '3',
      'x-ratelimit-remaining-requests': '2',
      'x-ratelimit-reset-requests': '45s',
      'x-ratelimit-limit-tokens': '40',
      'x-ratelimit-remaining-tokens': '33',
      'x-ratelimit-reset-tokens': '45s',
    });
    expect(limitsIn(await complete('bob'))).toEqual({});
  });

  it('is refused beyond them, in the form of each API, and let in with the next minute', async () => {
    const { complete, post, as, records, engine } = limited();
    expect((await complete('alice', { n: 3 })).status).toBe(200);
    const refused = await complete('alice', { n: 3 });
    expect(refused.status).toBe(429);
    expect(limitsIn(refused)).toMatchObject({
      'retry-after': '45',
      'x-ratelimit-remaining-tokens': '29',
      'x-ratelimit-remaining-requests': '2',
    });
    const { error } = (await refused.json()) as { error: Record<string, unknown> };
    expect(error).toEqual({
      message:
        "Rate limit reached for the API key 'alice' on tokens per minute: the limit is 40, 29 are left, and this request needs 35. Please try again in 45 s.",
      type: 'tokens',
      param: null,
      code: 'rate_limit_exceeded',
    });
    const messages = [{ role: 'user', content: 'abcde' }];
    const anthropic = await post('/v1/messages', { model: 'toy', messages, max_tokens: 25 }, as('alice'));
    expect(anthropic.status).toBe(429);
    expect(await anthropic.json()).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', details: { error_code: 'rate_limit_exceeded' } },
    });
    expect(limitsIn(anthropic)).toMatchObject({
      'anthropic-ratelimit-tokens-limit': '40',
      'anthropic-ratelimit-tokens-remaining': '29',
      'anthropic-ratelimit-tokens-reset': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      'anthropic-ratelimit-requests-limit': '3',
    });
    const ollama = await post(
      '/api/generate',
      { model: 'toy', prompt: 'abcde', options: { num_predict: 10 } },
      as('alice'),
    );
    expect([ollama.status, await ollama.json()]).toEqual([
      429,
      { error: expect.stringContaining('Rate limit') },
    ]);
    expect(engine.requests).toHaveLength(3);
    records.ms += 45_000;
    expect((await complete('alice', { n: 3 })).status).toBe(200);
  });

  it('is refused by its requests, which one that cannot be begun is none of', async () => {
    const { complete, engine, usage } = limited(() => say('hi'), { maxActive: 0 });
    for (let i = 0; i < 5; i++)
      expect((await (await complete('alice')).json()) as never).toMatchObject({
        error: { code: 'queue_full' },
      });
    expect((await usage('alice'))[0]).toMatchObject({
      left: { requests: { remaining: 3 }, tokens: { remaining: 40 } },
    });
    expect(engine.requests).toHaveLength(0);
    const open = limited();
    for (let i = 0; i < 3; i++) await open.complete('alice', { max_tokens: 1 });
    const fourth = await open.complete('alice', { max_tokens: 1 });
    expect(await fourth.json()).toMatchObject({ error: { type: 'requests', code: 'rate_limit_exceeded' } });
  });

  it('has no use of coming again with what is more than it may ever have', async () => {
    const { complete } = limited();
    const answer = await complete('alice', { max_tokens: 36 });
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
      ...[429, 'false', null],
    ]);
    expect(((await answer.json()) as { error: object }).error).toMatchObject({
      message: expect.stringMatching(
        /^Request too large .* the limit is 40, and this request needs 41\. Ask for fewer tokens/,
      ),
    });
  });

  it('is not charged for what a client that left did not get', async () => {
    const { complete, usage, engine } = limited(() => [{ tokens: [97] }, { waitMs: 60_000 }]);
    const streamed = await complete('alice', { stream: true });
    // All that it may take is counted while it lasts.
    expect(limitsIn(streamed)['x-ratelimit-remaining-tokens']).toBe('25');
    const reader = streamed.body!.getReader();
    await reader.read();
    await reader.cancel();
    await expect.poll(() => engine.cancelled).toBe(1);
    expect((await usage('alice'))[0]).toMatchObject({ left: { tokens: { remaining: 34 } } });
  });
});

describe('what keys have taken', () => {
  const encoders = new ServedEncoders();
  afterAll(() => encoders.close());

  it('is told to admins of all keys, and to others of themselves; the metrics have it too', async () => {
    const cached: Script = () => [{ tokens: [97], cachedTokens: 4 }, { tokens: [98] }, { finish: 'stop' }];
    const { complete, usage, get, as, records } = limited(cached);
    await complete('alice');
    await complete('bob', { n: 2 });
    await complete('alice', { max_tokens: 40 });
    const alice = {
      key: 'alice',
      limits: { tokens_per_minute: 40, requests_per_minute: 3 },
      left: {
        requests: { of: 'requests_per_minute', limit: 3, remaining: 2, reset_seconds: 45 },
        tokens: { of: 'tokens_per_minute', limit: 40, remaining: 33, reset_seconds: 45 },
      },
      today: { requests: 1, prompt_tokens: 5, cached_prompt_tokens: 4, completion_tokens: 2 },
      since_start: {
        ...{ requests: 1, prompt_tokens: 5, cached_prompt_tokens: 4, completion_tokens: 2 },
        refused_requests: 1,
      },
    };
    expect(await usage('alice')).toEqual([alice]);
    const all = await usage('root');
    expect(all.map(({ key }) => key)).toEqual(['alice', 'bob', 'root']);
    expect(all[1]).toMatchObject({
      today: { requests: 1, prompt_tokens: 5, completion_tokens: 4 },
      left: {},
    });
    records.ms += 86_400_000;
    expect((await usage('alice'))[0]).toMatchObject({ today: { requests: 1 }, since_start: { requests: 1 } });
    const textFor = async (name: string) => (await get('/metrics', as(name))).text();
    expect(await textFor('alice')).not.toContain('skein:key_');
    const text = await textFor('root');
    for (const line of [
      'skein:key_requests_total{key="alice"} 1',
      'skein:key_prompt_tokens_total{key="bob"} 5',
      'skein:key_cached_prompt_tokens_total{key="alice"} 4',
      'skein:key_completion_tokens_total{key="bob"} 4',
      'skein:key_refused_total{key="alice"} 1',
    ]) {
      expect(text).toContain(`${line}\n`);
    }
  });

  it('is counted for answers that are made in the background, and for embeddings', async () => {
    const { post, as, usage, models } = limited();
    const background = { model: 'toy', input: 'abcde', background: true, max_output_tokens: 8 };
    await post('/v1/responses', background, as('bob'));
    await expect
      .poll(async () => (await usage('bob'))[0])
      .toMatchObject({ today: { requests: 1, completion_tokens: 2 } });
    models.add(await encoders.open('encoder', 'bert-mean'));
    const embedded = await post('/v1/embeddings', { model: 'encoder', input: ['ab', 'c'] }, as('alice'));
    const { usage: taken } = (await embedded.json()) as { usage: { prompt_tokens: number } };
    expect((await usage('alice'))[0]).toMatchObject({
      today: { requests: 1, prompt_tokens: taken.prompt_tokens },
    });
    const long = await post('/v1/embeddings', { model: 'encoder', input: 'a'.repeat(60) }, as('alice'));
    expect(long.status).toBe(429);
  });
});

it('times to the next window are written as Go writes them', () => {
  const texts = [0, 450.2, 1000, 59_001, 360_000, 10_805_000].map(durationText);
  expect(texts).toEqual(['0ms', '451ms', '1s', '1m0s', '6m0s', '3h0m5s']);
});
