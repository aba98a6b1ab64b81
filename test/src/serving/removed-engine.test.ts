import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ServedApp } from '../../../src/commands/open-server.js';
import type { RunningModel } from '../../../src/serving/running-model.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { readChunks } from '../support/toy-server.js';

/** Imports the compiled module: engines run in threads, which need it. */
const compiled = <Module>(path: string): Promise<Module> =>
  import(new URL(`../../../dist/src/${path}`, import.meta.url).href);
const { serveModels } =
  await compiled<typeof import('../../../src/commands/open-server.js')>('commands/open-server.js');
const { loadConfig } = await compiled<typeof import('../../../src/settings/config.js')>('settings/config.js');
const { ApiKeys } = await compiled<typeof import('../../../src/server/web/access/api-keys.js')>(
  'server/web/access/api-keys.js',
);
const { loadModels } =
  await compiled<typeof import('../../../src/serving/load-models.js')>('serving/load-models.js');

const cacheDir = temporaryFolder('skein-removed');
const NAMES = ['stays', 'goes', 'vectors'];
const paths = [tinyModelPath('gqa'), tinyModelPath('gqa'), tinyModelPath('bert-mean')];
let loaded: RunningModel[] = [];
let served: ServedApp;

beforeAll(async () => {
  const model = NAMES.map((name, index) => `${name}=${paths[index]}`);
  const config = loadConfig({ flags: { model, logLevel: 'silent' } });
  const shared = { cacheDir, weights: 'f32', threads: 1, maxTokens: 4096 } as const;
  loaded = await loadModels(
    NAMES.map((name, index) => ({ name, options: { ...shared, model: paths[index]! } })),
  );
  const running = config.models.map((entry, index) => ({ entry, loaded: loaded[index]! }));
  served = serveModels(running, config, { apiKeys: new ApiKeys([]), corsOrigins: [] });
});
afterAll(() => Promise.all(loaded.map((model) => model.close({ abort: true }))));

const post = async (path: string, body: object) =>
  served.app.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const complete = (model: string, fields: object = {}) =>
  post('/v1/completions', {
    model,
    prompt: 'ab',
    max_tokens: 48,
    temperature: 0,
    ignore_eos: true,
    ...fields,
  });

interface Answer {
  choices: { text: string; finish_reason: string | null }[];
  error?: { message: string; code: string };
}

describe('an engine that is closed when its model is removed', () => {
  it('ends what was begun with the answer that it would have had, and the others go on', async () => {
    const whole = (await (await complete('goes')).json()) as Answer;
    const beside = (await (await complete('stays')).json()) as Answer;
    const streams = await Promise.all(Array.from({ length: 8 }, () => complete('goes', { stream: true })));
    const others = Array.from({ length: 8 }, () => complete('stays'));
    // Some of these are still on their way to the engine when it is asked to close.
    const late = Array.from({ length: 24 }, () => complete('goes'));
    served.models.remove('goes');
    const closed = loaded[1]!.close();
    const after = await complete('goes');
    expect(after.status).toBe(404);
    expect(((await after.json()) as Answer).error?.message).toBe(
      "The model 'goes' does not exist. This server serves 'stays', 'vectors'.",
    );
    for (const stream of streams) {
      const chunks = await readChunks<Answer>(stream);
      const text = chunks.map(({ choices }) => choices[0]?.text ?? '').join('');
      expect([text, chunks.at(-1)!.choices[0]!.finish_reason]).toEqual([whole.choices[0]!.text, 'length']);
    }
    for (const response of await Promise.all(late)) {
      const answer = (await response.json()) as Answer;
      if (response.status === 200) expect(answer.choices[0]!.text).toBe(whole.choices[0]!.text);
      else
        expect([[404, 503], answer.error?.message]).toEqual([
          expect.arrayContaining([response.status]),
          expect.stringMatching(/does not exist|not running/),
        ]);
    }
    for (const response of await Promise.all(others)) {
      expect(((await response.json()) as Answer).choices[0]!.text).toBe(beside.choices[0]!.text);
    }
    await closed;
    const metrics = await (await served.app.request('/metrics')).text();
    expect(metrics).toContain('model_name="stays"');
    expect(metrics).not.toContain('model_name="goes"');
    expect(await (await served.app.request('/health')).json()).toMatchObject({
      status: 'ready',
      models: { stays: { status: 'ready' }, vectors: { status: 'ready' } },
    });
  });

  it('fails what was begun once, by name, where it is cancelled', async () => {
    const texts = Array.from({ length: 256 }, (_, index) => `the cat sat on the mat ${index}`);
    const asked = Array.from({ length: 8 }, () => post('/v1/embeddings', { model: 'vectors', input: texts }));
    await expect.poll(() => loaded[2]!.statistics.counts().running, { interval: 1 }).toBeGreaterThan(0);
    served.models.remove('vectors');
    await loaded[2]!.close({ abort: true });
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).not.toEqual([]);
    for (const answer of answers) {
      expect([200, 503]).toContain(answer.status);
      if (answer.status === 503)
        expect(((await answer.json()) as Answer).error).toMatchObject({ code: 'engine_unavailable' });
    }
    expect((await post('/v1/embeddings', { model: 'vectors', input: 'a' })).status).toBe(404);
    expect((await post('/v1/embeddings', { input: 'a' })).status).toBe(400);
    expect((await complete('stays')).status).toBe(200);
  });
});
