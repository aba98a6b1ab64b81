import { describe, expect, it } from 'vitest';
import { resolveSamplingParams } from '../../../callbacks/sampling-params.js';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { ServedGenerator } from '../../../src/serving/served-model.js';
import { templatedCodec } from '../support/toy-codec.js';
import { say, toyServer } from '../support/toy-server.js';

const messages = [{ role: 'user', content: 'hi' }];
const sampling = { temperature: 0.6, topK: 20, topP: 0.95, repetitionPenalty: 1.05, maxTokens: 33 };
const model: Partial<ServedGenerator> = {
  codec: templatedCodec('{{ messages }}'),
  sampling,
  defaultMaxTokens: 33,
  maxInputLen: 4000,
  maxSeqLen: 5000,
};

const ROUTES: [path: string, body: object][] = [
  ['/v1/chat/completions', { messages }],
  ['/v1/completions', { prompt: 'a' }],
  ['/v1/responses', { input: 'hi' }],
  ['/v1/messages', { messages, max_tokens: 5 }],
  ['/api/chat', { model: 'toy', messages, stream: false }],
  ['/api/generate', { model: 'toy', prompt: 'a', stream: false }],
];

async function asked(
  path: string,
  body: object,
  fields: Partial<ServedGenerator> = model,
): Promise<TokenRequest> {
  const toy = toyServer(() => say('x'), { model: fields });
  const response = await toy.post(path, body);
  expect(response.status).toBe(200);
  await response.text();
  return toy.engine.requests[0]!;
}

describe('settings that a model recommends', () => {
  const { maxTokens: _, ...samplers } = sampling;

  it.each(ROUTES)('are the defaults of %s', async (path, body) => {
    expect(await asked(path, body)).toMatchObject(samplers);
  });

  it.each(ROUTES)('give way to those of a request to %s', async (path, body) => {
    const own = { temperature: 0, top_k: 3, top_p: 0.5 };
    const sent = path.startsWith('/api') ? { ...body, options: own } : { ...body, ...own };
    expect(await asked(path, sent)).toMatchObject({
      temperature: 0,
      topK: 3,
      topP: 0.5,
      repetitionPenalty: 1.05,
    });
  });

  it('bound an answer whose request names no length, except that of a completion', async () => {
    const lengths = await Promise.all(
      ROUTES.map(async ([path, body]) => (await asked(path, body)).maxNewTokens),
    );
    expect(lengths).toEqual([33, 16, 33, 5, 33, 33]);
  });

  it('hold before the usual values of Ollama, which stay where the model recommends nothing', async () => {
    const [path, body] = ROUTES[4]!;
    const some = await asked(path, body, { ...model, sampling: { temperature: 0.3 } });
    expect(some).toMatchObject({
      temperature: 0.3,
      topK: 40,
      topP: 0.9,
      repetitionPenalty: 1.1,
      penaltyLastN: 64,
    });
  });

  it('are not those of beams', async () => {
    const beams = { prompt: 'a', use_beam_search: true, best_of: 2, n: 2 };
    const sampled = resolveSamplingParams(await asked('/v1/completions', beams));
    expect(sampled).toMatchObject({ temperature: 1, topK: 0 });
  });

  it('are told where clients look', async () => {
    const toy = toyServer(() => say('x'), { model });
    const get = async (path: string) => (await (await toy.get(path)).json()) as Record<string, never>;
    expect((await get('/props')).default_generation_settings).toMatchObject({
      params: { n_predict: 33, temperature: 0.6, top_k: 20, top_p: 0.95, min_p: 0, repeat_penalty: 1.05 },
    });
    expect((await get('/v1/models')).data).toMatchObject([
      {
        sampling_defaults: {
          temperature: 0.6,
          top_k: 20,
          top_p: 0.95,
          repetition_penalty: 1.05,
          max_tokens: 33,
        },
      },
    ]);
    const response = await toy.post('/v1/responses', { input: 'hi' });
    expect(await response.json()).toMatchObject({ temperature: 0.6, top_p: 0.95 });
    const plain = toyServer(() => say('x'));
    expect(JSON.stringify(await (await plain.get('/v1/models')).json())).not.toContain('sampling_defaults');
  });
});
