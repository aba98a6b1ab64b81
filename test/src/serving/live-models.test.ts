import { describe, expect, it } from 'vitest';
import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import type { EncoderBatch } from '../../../host/encoder-host.js';
import { ModelState } from '../../../src/serving/model-state.js';
import type { EngineCounts, RequestCounts } from '../../../src/serving/running-model.js';
import type { ServedEncoder, ServedGenerator } from '../../../src/serving/served-model.js';
import { parseExposition } from '../../../tools/monitoring/exposition.js';
import { FakeEngine, type Script } from '../support/fake-engine.js';
import { ToldStatistics } from '../support/served-models.js';
import { readChunks, say, type ToyServer, toyModel, toyServer } from '../support/toy-server.js';

const script: Script = () => say('abc');
/** Script of a request that runs until the test has looked at it. */
const slow: Script = () => [{ tokens: [97] }, { waitMs: 300 }, { tokens: [98] }, { finish: 'stop' }];

const added = (id: string, fields: Partial<ServedGenerator> = {}, run = script) =>
  toyModel(new FakeEngine(run), { id, ...fields });

function encoder(id: string): ServedEncoder {
  return {
    kind: 'encoder',
    id,
    aliases: [],
    created: 0,
    maxSeqLen: 16,
    state: new ModelState(),
    statistics: new ToldStatistics<RequestCounts, EncoderBatch>(() => ({ running: 1, waiting: 0 })),
    vocabSize: 100,
    outputWidth: 2,
    head: {
      kind: 'embedding',
      pooling: 'mean',
      normalize: true,
      matryoshka: null,
      layers: [],
      prompts: {},
      defaultPrompt: null,
    },
    codec: {
      single: async (texts) => texts.map(() => ({ tokenIds: Int32Array.of(1), tokenTypes: null })),
      pairs: async () => [],
      unweighted: new Set(),
    },
    engine: { encode: async (sequences) => sequences.map(() => Float32Array.of(1, 0)) },
  };
}

const ask = (toy: ToyServer, model?: string, fields: object = {}) =>
  toy.post('/v1/completions', { prompt: 'x', ...(model === undefined ? {} : { model }), ...fields });
const statusOf = async (toy: ToyServer, path: string) => (await toy.get(path)).status;
// biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
const json = async (toy: ToyServer, path: string): Promise<any> => (await toy.get(path)).json();
const listed = async (toy: ToyServer) =>
  (await json(toy, '/v1/models')).data.map(({ id }: { id: string }) => id);

async function samples(toy: ToyServer) {
  const families = parseExposition(await (await toy.get('/metrics')).text());
  return [...families.values()].flatMap((family) => family.samples);
}

const namesIn = async (toy: ToyServer) => [
  ...new Set((await samples(toy)).flatMap(({ labels }) => labels.model_name ?? [])),
];

const seriesOf = async (toy: ToyServer, name: string, model: string) =>
  (await samples(toy)).find((one) => one.name === name && one.labels.model_name === model)?.value;

describe('a model that is added while the server serves', () => {
  it('is listed, answers, and has health, statistics and metrics of its own', async () => {
    const toy = toyServer(script);
    expect((await ask(toy, 'late')).status).toBe(404);
    toy.models.add(added('late', { aliases: ['alias'] }));
    expect(await listed(toy)).toEqual(['toy', 'late']);
    for (const name of ['late', 'alias']) {
      const answer = await ask(toy, name);
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ choices: [{ text: 'abc' }] });
    }
    expect((await json(toy, '/v1/models/late')).id).toBe('late');
    expect(Object.keys((await json(toy, '/health')).models)).toEqual(['toy', 'late']);
    expect(await json(toy, '/health?model=late')).toMatchObject({ status: 'ready' });
    expect((await json(toy, '/stats?model=late')).model).toBe('late');
    expect(await namesIn(toy)).toEqual(['toy', 'late']);
    expect(await seriesOf(toy, 'vllm:generation_tokens_total', 'late')).toBe(6);
    expect(await seriesOf(toy, 'vllm:generation_tokens_total', 'toy')).toBe(0);
    const reset = await toy.post('/v1/cache/reset', '');
    expect(((await reset.json()) as { models: object[] }).models).toHaveLength(2);
  });

  it('is one that a request without a name gets, where it is the first', async () => {
    const toy = toyServer(script);
    toy.models.remove('toy');
    const none = await ask(toy);
    expect(none.status).toBe(400);
    expect(await none.json()).toMatchObject({
      error: { message: 'No model of this server generates text.' },
    });
    expect(await statusOf(toy, '/health')).toBe(200);
    expect(await listed(toy)).toEqual([]);
    toy.models.add(added('late'));
    expect((await ask(toy)).status).toBe(200);
  });

  it('is counted by what its engine tells: iterations, or batches of an encoder', async () => {
    const toy = toyServer(script);
    const statistics = new ToldStatistics<EngineCounts, IterationStats>(() => {
      return { running: 2, waiting: 5, maxBlocks: 10, usedBlocks: 4 };
    });
    toy.models.add(added('late', { statistics }));
    const vectors = encoder('vectors');
    toy.models.add(vectors);
    const batches = vectors.statistics as ToldStatistics<RequestCounts, EncoderBatch>;
    batches.tell({ sequences: 3, tokens: 20, forwardMs: 4 });
    expect(await seriesOf(toy, 'vllm:num_requests_waiting', 'late')).toBe(5);
    expect(await seriesOf(toy, 'vllm:kv_cache_usage_perc', 'late')).toBe(0.4);
    expect(await seriesOf(toy, 'skein:context_tokens_total', 'vectors')).toBe(20);
    expect(await seriesOf(toy, 'skein:iteration_requests_sum', 'vectors')).toBe(3);
    expect(await seriesOf(toy, 'skein:iteration_context_requests_sum', 'vectors')).toBe(3);
    expect(await seriesOf(toy, 'skein:executor_seconds_total', 'vectors')).toBeCloseTo(0.004);
    expect(await seriesOf(toy, 'vllm:iteration_tokens_total_sum', 'vectors')).toBe(20);
    expect(await seriesOf(toy, 'vllm:num_requests_running', 'vectors')).toBe(1);
    expect(await seriesOf(toy, 'vllm:kv_cache_usage_perc', 'vectors')).toBe(0);
    expect((await toy.post('/v1/embeddings', { input: 'a' })).status).toBe(200);
    toy.models.remove('vectors');
    expect(batches.listeners.size).toBe(0);
    expect((await toy.post('/v1/embeddings', { input: 'a' })).status).toBe(400);
  });

  it('is down where its engine is, in /health and the metrics', async () => {
    const toy = toyServer(script);
    const late = added('late');
    late.state.restart(new Error('it died'));
    toy.models.add(late);
    expect(await json(toy, '/health')).toMatchObject({ status: 'degraded', reason: 'it died' });
    expect(await seriesOf(toy, 'skein:engine_ready', 'late')).toBe(0);
    late.state.recover();
    expect(await json(toy, '/health')).toMatchObject({ status: 'ready', restarts: 1 });
    expect(await seriesOf(toy, 'skein:engine_ready', 'late')).toBe(1);
    expect(await seriesOf(toy, 'skein:engine_restarts_total', 'late')).toBe(1);
    late.state.fail(new Error('it died for good'));
    expect(await statusOf(toy, '/health?model=late')).toBe(503);
    toy.models.remove('late');
    expect(await json(toy, '/health')).toEqual({
      status: 'ready',
      restarts: 0,
      models: { toy: { status: 'ready', restarts: 0 } },
    });
  });
});

describe('a model that is removed while the server serves', () => {
  it('is answered with 404 everywhere, with the names of those that are left', async () => {
    const toy = toyServer(script);
    toy.models.add(added('late', { aliases: ['alias'] }));
    toy.models.remove('late');
    for (const name of ['late', 'alias']) {
      const refused = await ask(toy, name);
      expect(refused.status).toBe(404);
      expect(await refused.json()).toMatchObject({
        error: {
          message: `The model '${name}' does not exist. This server serves 'toy'.`,
          code: 'model_not_found',
        },
      });
    }
    expect(await listed(toy)).toEqual(['toy']);
    for (const path of [
      '/v1/models/late',
      '/health?model=late',
      '/stats?model=late',
      '/stats/stream?model=late',
    ])
      expect(await statusOf(toy, path), path).toBe(404);
    expect((await ask(toy)).status).toBe(200);
  });

  it('has no series any more, whatever labels they had; when it comes again it is counted anew', async () => {
    const toy = toyServer(script);
    const kvCache = { tokensPerBlock: 16, secondaryBlocks: 1, kvDtype: 'bf16' };
    const late = added('late', { kvCache }, (_, index) => [
      { tokens: [97] },
      ...(index === 0 ? [] : [{ error: new Error('x') }]),
      { finish: 'length' },
    ]);
    toy.models.add(late);
    await (await ask(toy, 'late')).text();
    await (await ask(toy, 'late')).text();
    late.state.restart(new Error('it died'));
    const names = (await samples(toy)).filter(({ labels }) => labels.model_name === 'late');
    expect(new Set(names.map(({ name }) => name)).size).toBeGreaterThan(60);
    toy.models.remove('late');
    expect(await namesIn(toy)).toEqual(['toy']);
    late.state.recover();
    expect(await namesIn(toy)).toEqual(['toy']);
    toy.models.add(late);
    expect(await seriesOf(toy, 'vllm:generation_tokens_total', 'late')).toBe(0);
    expect(await seriesOf(toy, 'skein:engine_restarts_total', 'late')).toBe(0);
    expect(await seriesOf(toy, 'skein:engine_ready', 'late')).toBe(1);
  });

  it.each([false, true])(
    'ends what it has begun (stream: %s), which leaves no series behind',
    async (stream) => {
      const toy = toyServer(script);
      const late = added('late', {}, slow);
      toy.models.add(late);
      const asked = ask(toy, 'late', { stream });
      await expect.poll(() => (late.engine as FakeEngine).active, { interval: 1 }).toBe(1);
      toy.models.remove('late');
      expect((await ask(toy, 'late')).status).toBe(404);
      const answer = await asked;
      expect(answer.status).toBe(200);
      if (stream) {
        const chunks = await readChunks<{ choices: { text: string; finish_reason: string | null }[] }>(
          answer,
        );
        expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe('ab');
        expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe('stop');
      } else expect(await answer.json()).toMatchObject({ choices: [{ text: 'ab', finish_reason: 'stop' }] });
      expect(await namesIn(toy)).toEqual(['toy']);
    },
  );

  it('answers who had found it before, though its tokens are still being made', async () => {
    const toy = toyServer(script);
    let encoded: (() => void) | undefined;
    const late = added('late');
    const { codec } = late;
    late.codec = {
      ...codec,
      encodeText: async (text, signal) => {
        await new Promise<void>((resolve) => {
          encoded = resolve;
        });
        return codec.encodeText(text, signal);
      },
    };
    toy.models.add(late);
    const asked = ask(toy, 'late');
    await expect.poll(() => encoded, { interval: 1 }).toBeDefined();
    toy.models.remove('late');
    encoded!();
    expect(await (await asked).json()).toMatchObject({ choices: [{ text: 'abc' }] });
    expect(await namesIn(toy)).toEqual(['toy']);
  });
});

describe('the feeds', () => {
  /** An engine whose iterations the test makes. */
  class Watched {
    readonly listeners = new Set<() => void>();
    onStats = (listener: () => void) => {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    };
    statsJson = () => '{"Iteration Counter":1}';
    watchFormation = () => () => {};
    step = () => {
      for (const listener of this.listeners) listener();
    };
  }

  it('of all models take in who is added, and go on without who is removed', async () => {
    const [first, second] = [new Watched(), new Watched()];
    const toy = toyServer(script, { model: { watch: first } });
    const abort = new AbortController();
    const stream = await toy.get('/stats/stream', { signal: abort.signal });
    first.step();
    toy.models.add(added('late', { watch: second }));
    second.step();
    expect(second.listeners.size).toBe(1);
    toy.models.remove('late');
    expect([first.listeners.size, second.listeners.size]).toEqual([1, 0]);
    toy.models.remove('toy');
    expect(first.listeners.size).toBe(0);
    const third = new Watched();
    toy.models.add(added('third', { watch: third }));
    third.step();
    // The stream is still open: only now does it end, and no model is watched any more.
    toy.state.drain();
    const text = await stream.text();
    expect(Array.from(text.matchAll(/"model":"(\w+)"/g), (match) => match[1])).toEqual([
      'toy',
      'late',
      'third',
    ]);
    expect(third.listeners.size).toBe(0);
  });

  it('of one model end with it', async () => {
    const [first, second] = [new Watched(), new Watched()];
    const toy = toyServer(script, { model: { watch: first } });
    toy.models.add(added('late', { watch: second }));
    const stream = await toy.get('/stats/stream?model=late');
    second.step();
    toy.models.remove('late');
    expect(await stream.text()).toBe(
      ': skein\n\nevent: stats\ndata: {"model":"late","Iteration Counter":1}\n\n',
    );
    expect(second.listeners.size).toBe(0);
    expect(await statusOf(toy, '/stats/stream?model=late')).toBe(404);
  });

  it('are left by who closes the stream before the model goes', async () => {
    const watched = new Watched();
    const toy = toyServer(script, { model: { watch: watched } });
    const stream = await toy.get('/stats/stream');
    expect(watched.listeners.size).toBe(1);
    await stream.body!.cancel();
    expect(watched.listeners.size).toBe(0);
    toy.models.add(added('late', { watch: watched }));
    expect(watched.listeners.size).toBe(0);
  });
});
