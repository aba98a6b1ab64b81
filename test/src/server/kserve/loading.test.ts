import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ModuleModels } from '../../serving/support/module-models.js';

const models = new ModuleModels();
const gate = join(models.folder, 'gate');
const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\n';
const EXECUTE = 'export const execute = (all) => all.map(({ inputs: { X } }) => ({ outputs: { Y: X } }));';

beforeAll(() => {
  models.write('fast', IO, EXECUTE);
  models.write(
    'slow',
    IO,
    `import { existsSync } from 'node:fs';
    export async function initialize() {
      while (!existsSync('${gate}')) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    ${EXECUTE}`,
  );
  models.write('broken', IO, "throw new Error('no luck');");
});
afterAll(() => models.close());

it('a server is ready when the models that it starts with are loaded, or cannot be', async () => {
  const { serveModels } = await import(
    new URL('../../../../dist/src/commands/open-server.js', import.meta.url).href
  );
  const { loadConfig } = await import(
    new URL('../../../../dist/src/settings/config.js', import.meta.url).href
  );
  const { ApiKeys } = await import(
    new URL('../../../../dist/src/server/web/access/api-keys.js', import.meta.url).href
  );
  const config = loadConfig({ flags: { modelRepository: [models.folder], logLevel: 'silent' } });
  const { app, repository } = serveModels([], config, { apiKeys: new ApiKeys([]), corsOrigins: [] });
  models.repository = repository;
  const ask = async (path: string) => {
    const response: Response = await app.request(path);
    return [response.status, await response.json()];
  };
  expect(await ask('/health')).toMatchObject([
    503,
    { status: 'loading', reason: 'the model repository is being read' },
  ]);
  const start = repository.start(null).catch((error: Error) => error.message);
  await expect.poll(() => ask('/health')).toMatchObject([503, { loading: ['slow'] }]);
  expect(await ask('/health')).toMatchObject([
    503,
    { status: 'loading', reason: 'the model slow is being loaded' },
  ]);
  expect(await ask('/v2/health/ready')).toEqual([
    400,
    { error: 'Server not ready: the model slow is being loaded' },
  ]);
  expect(await ask('/live')).toEqual([200, { status: 'live' }]);
  expect(await ask('/v2/health/live')).toEqual([200, { live: true }]);
  expect(await ask('/v2/models/fast/ready')).toEqual([200, { name: 'fast', ready: true }]);
  expect((await ask('/v2/models/slow'))[0]).toBe(503);
  writeFileSync(gate, '');
  expect(await start).toMatch(/^failed to load 'broken', .*no luck/);
  expect(await ask('/health')).toEqual([200, { status: 'ready', restarts: 0, models: {} }]);
  expect(await ask('/v2/health/ready')).toEqual([200, { ready: true }]);
});
