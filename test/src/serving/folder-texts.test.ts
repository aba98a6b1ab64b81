import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { postJson } from '../../support/post-json.js';
import { type SkeinProcess, startServer } from '../support/skein-process.js';

const folder = temporaryFolder('skein-folder-texts');
const fixtures = (name: string) => join(import.meta.dirname, '../../fixtures', name);
let server: SkeinProcess;

function write(name: string, parameters: Record<string, string>): void {
  mkdirSync(join(folder, name, '1'), { recursive: true });
  const lines = Object.entries(parameters).map(
    ([key, value]) => `  ${key}: {string_value: ${JSON.stringify(value)}}\n`,
  );
  writeFileSync(join(folder, name, 'config.yaml'), `backend: skein\nparameters:\n${lines.join('')}`);
}

beforeAll(async () => {
  write('story', { model: tinyModelPath('gqa'), kvCacheTokens: '2048' });
  write('vectors', { model: fixtures('tiny-bert-mean') });
  write('moods', {
    model: writeMadeEmbedder(temporaryFolder('skein-folder-classes'), madeEmbedder('bert-classes')),
    weights: 'f32',
  });
  write('missing', { model: join(folder, 'nowhere') });
  for (const [name, source] of [
    ['files', tinyModelPath('gqa')],
    ['gguf', fixtures('tiny-gguf')],
  ] as const) {
    cpSync(source, join(folder, name, '1'), { recursive: true });
    writeFileSync(join(folder, name, 'config.yaml'), 'backend: skein\nparameters: { kvCacheTokens: 2048 }\n');
  }
  write('misspelt', { model: tinyModelPath('gqa'), kvCacheTokns: '2048' });
  const repository = ['--model-repository', folder, '--model-control-mode', 'explicit'];
  server = await startServer([...repository, '--load-model', 'story']);
});
afterAll(() => server?.stop());

const load = (name: string) => postJson(`${server.url}/v2/repository/models/${name}/load`, {});
const unload = (name: string) => postJson(`${server.url}/v2/repository/models/${name}/unload`, {});
const served = async () => {
  const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
};
const errorOf = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: unknown }).error,
];

describe('a model of texts in a folder', () => {
  it('answers the protocol of tensors and the API of texts alike', async () => {
    const tensor = (name: string, datatype: string, value: unknown) => ({
      name,
      shape: [1],
      datatype,
      data: [value],
    });
    const inputs = [
      tensor('text_input', 'BYTES', 'ab'),
      tensor('max_tokens', 'INT32', 12),
      tensor('temperature', 'FP32', 0),
    ];
    const inferred = await (await postJson(`${server.url}/v2/models/story/infer`, { inputs })).json();
    const asked = { model: 'story', prompt: 'ab', max_tokens: 12, temperature: 0 };
    const completed = await (await postJson(`${server.url}/v1/completions`, asked)).json();
    const { text } = (completed as { choices: { text: string }[] }).choices[0]!;
    expect(inferred).toMatchObject({
      model_name: 'story',
      outputs: [
        { name: 'text_output', data: [text] },
        { name: 'finish_reason', data: ['length'] },
      ],
    });
    const stats = await (await fetch(`${server.url}/v2/models/story/stats`)).json();
    expect(stats).toMatchObject({ model_stats: [{ name: 'story', inference_count: 2 }] });
  });

  it('comes and goes in both', async () => {
    expect(await served()).toEqual(['story']);
    expect((await load('vectors')).status).toBe(200);
    expect(await served()).toEqual(['story', 'vectors']);
    const embedded = await postJson(`${server.url}/v1/embeddings`, { model: 'vectors', input: 'hi' });
    expect(await embedded.json()).toMatchObject({ data: [{ object: 'embedding' }] });
    expect((await unload('vectors')).status).toBe(200);
    expect(await served()).toEqual(['story']);
    expect((await postJson(`${server.url}/v1/embeddings`, { model: 'vectors', input: 'hi' })).status).toBe(
      404,
    );
  });

  it('may classify: its scores by tensors are those of the other routes, with the names of its labels', async () => {
    expect((await load('moods')).status).toBe(200);
    const { input, scores } = madeEmbedder('bert-classes').classes![0]!;
    const inputs = [{ name: 'text_input', shape: [2, 1], datatype: 'BYTES', data: [input, 'a dog'] }];
    const infer = async (parameters: object) => {
      const outputs = [{ name: 'label_scores', parameters }];
      const answer = await postJson(`${server.url}/v2/models/moods/infer`, { inputs, outputs });
      return ((await answer.json()) as { outputs: { shape: number[]; data: (number | string)[] }[] })
        .outputs[0]!;
    };
    const { shape, data } = await infer({});
    expect(shape).toEqual([2, 3]);
    for (const [i, score] of scores.entries())
      expect(Math.abs((data[i] as number) - score)).toBeLessThan(1e-5);
    const named = await infer({ classification: 1 });
    expect(named.shape).toEqual([2, 1]);
    expect(named.data[0]).toMatch(/^0\.679\d+:0:joy$/);
    expect((await unload('moods')).status).toBe(200);
  });

  it.each(['files', 'gguf'])('may lie in the folder of its version: %s', async (name) => {
    expect((await load(name)).status).toBe(200);
    const asked = { model: name, prompt: 'ab', max_tokens: 3 };
    expect(await (await postJson(`${server.url}/v1/completions`, asked)).json()).toMatchObject({
      usage: { completion_tokens: expect.any(Number) },
    });
    expect((await unload(name)).status).toBe(200);
  });

  it('says why it cannot be loaded, and leaves the others running', async () => {
    expect(await errorOf(await load('missing'))).toEqual([
      400,
      expect.stringMatching(/^failed to load 'missing', .*nowhere: no such file or folder\.$/),
    ]);
    expect(await errorOf(await load('misspelt'))).toEqual([400, expect.stringContaining('kvCacheTokns')]);
    expect(await served()).toEqual(['story']);
  });
});
