import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { measureAside } from '../../dist/src/serving/on-demand/measure-aside.js';
import { measureModel } from '../../dist/src/serving/on-demand/model-measure.js';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { FakeHub, filesOf } from '../support/fake-hub.js';
import { freshFolders } from '../support/fresh-folders.js';
import { postJson } from '../support/post-json.js';
import { type SkeinProcess, startServer } from './support/skein-process.js';

const makeFolder = freshFolders('skein-serve-catalogue');
const ID = 'HuggingFaceTB/SmolLM2-135M-Instruct';

let hub: FakeHub;
let server: SkeinProcess;
beforeAll(async () => {
  hub = await FakeHub.start(ID, filesOf(tinyModelPath('gqa')));
  const folder = makeFolder();
  cpSync(tinyModelPath('bert-mean'), join(folder, 'vectors'), { recursive: true });
  writeFileSync(join(folder, 'broken.gguf'), 'no model');
  const flags = ['--models-dir', folder, '--kv-cache-tokens', '2048'];
  server = await startServer(flags, { HF_ENDPOINT: hub.endpoint, HF_HOME: makeFolder() });
});
afterAll(async () => {
  expect((await server.stop()).code).toBe(0);
  await hub.close();
});

interface Listed {
  data: { id: string; state: string; [name: string]: unknown }[];
  [name: string]: unknown;
}
const listed = async () => (await (await fetch(`${server.url}/catalogue`)).json()) as Listed;
const entry = async (name: string) => (await listed()).data.find(({ id }) => id === name);

it('a server downloads a model of the hub, measures it and itself, and uses it', async () => {
  await expect.poll(async () => (await entry(ID))?.state, { timeout: 60_000 }).toBe('absent');
  const begun = await postJson(`${server.url}/catalogue/downloads`, { repository: ID });
  expect(begun.status).toBe(202);
  const isMeasured = async () => {
    const { data, read_bytes_per_second: speed } = await listed();
    return speed !== null && data.some(({ id, state, fits }) => id === ID && state === 'stored' && fits);
  };
  await expect.poll(isMeasured, { timeout: 60_000 }).toBe(true);
  const { data, read_bytes_per_second: speed } = await listed();
  const { readBytes, contextTokens } = await measureModel(tinyModelPath('gqa'));
  const stored = data.find(({ id }) => id === ID);
  expect(stored).toMatchObject({ state: 'stored', context_tokens: contextTokens, problem: null });
  // Three digits are written.
  const expected = (speed as number) / readBytes;
  expect(stored!.tokens_per_second as number).toBeGreaterThan(0.99 * expected);
  expect(stored!.tokens_per_second as number).toBeLessThan(1.01 * expected);
  // As the page's button does.
  expect((await fetch(`${server.url}/props?model=${encodeURIComponent(ID)}`)).status).toBe(200);
  expect(await entry(ID)).toMatchObject({ state: 'loaded' });
});

it('lists what cannot be read with the reason, without its folder, and no encoders', async () => {
  await expect.poll(async () => (await entry('broken'))?.problem ?? null, { timeout: 60_000 }).not.toBe(null);
  expect((await entry('broken'))!.problem).toMatch(/^broken(?!.*skein-serve-catalogue)/);
  await expect.poll(async () => entry('vectors'), { timeout: 60_000 }).toBe(undefined);
});

it('measures in a thread what it measures in this one, with its errors', async () => {
  expect(await measureAside(tinyModelPath('gguf'))).toEqual(await measureModel(tinyModelPath('gguf')));
  await expect(measureAside(makeFolder())).rejects.toMatchObject({ code: 'SKEIN_CHECKPOINT' });
});
