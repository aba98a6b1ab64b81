import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AppOptions, createApp } from '../../../../src/server/app/app.js';
import { ServerMetrics } from '../../../../src/server/metrics/families/server-metrics.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import type { ModelRepository } from '../../../../src/serving/model-repository.js';
import { ModuleModels } from '../../serving/support/module-models.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { directoryOf } from '../../support/served-models.js';
import { listen, say, toyModel, toyServer } from '../../support/toy-server.js';
import { FakeModel, FakeRepository, fakeConfig } from '../kserve/support/fake-models.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const IO =
  'input: [{name: X, data_type: TYPE_INT32, dims: [-1]}]\noutput: [{name: Y, data_type: TYPE_INT32, dims: [-1]}]\nmax_batch_size: 8\n';
/** Answers what it gets; 13 is an error, and below 0 it waits until there is a file `open` next to it. */
const ECHO = `import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
export const execute = async (requests) => {
  const isHeld = requests[0].inputs.X.data[0] < 0;
  while (isHeld && !existsSync(new URL('open', import.meta.url))) await pause(2);
  return requests.map(({ inputs: { X } }) => (X.data[0] === 13 ? { error: 'unlucky' } : { outputs: { Y: X } }));
};`;
const LONG_NAME = `${'a-very-long-model-name-'.repeat(5)}q4`;

const platformOf = (repository: ModelRepository) => ({
  repository,
  serverId: 'skein',
  allowsUpload: false,
  sharedMemory: null,
});

/** A server of these models alone: none of them generates text. */
function serverOf(repository: ModelRepository, options: Partial<AppOptions> = {}) {
  const models = directoryOf();
  const app = createApp({
    models,
    state: new ServerState(models),
    metrics: new ServerMetrics(models),
    version: '0.0.0-test',
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    platform: platformOf(repository),
    ...options,
  });
  return listen({ app });
}

/** Models of every kind: what the page shows of their states, instances, queues and batches. */
export function modelsSuite(browser: () => Browser): void {
  const models = new ModuleModels();
  let server: { url: string; close: () => Promise<void> };
  beforeAll(async () => {
    models.write('echo', `${IO}instance_group: [{count: 2}]\n`, ECHO);
    models.write(LONG_NAME, IO, ECHO);
    await models.open('explicit', ['echo']);
    const apiKeys = new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]);
    server = await serverOf(models.repository, { apiKeys });
  });
  afterAll(async () => {
    await server?.close();
    await models.close();
  });

  /** The page of the repository, to which the key was given. */
  async function enter(options: Parameters<typeof visit>[2] = {}) {
    const visited = await visit(browser(), server.url, options);
    const { page } = visited;
    const dialog = page.getByRole('dialog', { name: 'API key' });
    await dialog.waitFor();
    // Nothing about the models is shown without the key.
    expect(await page.getByRole('region', { name: 'Models' }).count()).toBe(0);
    await dialog.getByLabel('API key').fill('sesame');
    await page.keyboard.press('Enter');
    const panel = page.getByRole('region', { name: 'Models' });
    await panel.waitFor();
    const card = (name: string) =>
      panel.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
    return { ...visited, panel, card };
  }

  it('are shown with what they do, as it changes, and the page is theirs where none generates text', async () => {
    const { page, problems, panel, card, close } = await enter();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.getByRole('region', { name: 'Chat' }).count()).toBe(0);
    await panel.getByRole('status').getByText('2 models: 1 ready, 1 never loaded.').waitFor();
    await card(LONG_NAME).getByText('Never loaded').waitFor();
    const echo = card('echo');
    await echo.getByText('version 1 · module').waitFor();
    await echo.getByText('2 instances: 2 idle').waitFor();

    for (const rows of [1, 3, 3]) await models.numbers('echo', Array(rows).fill([7]));
    await models.numbers('echo', [[13]]).catch(() => {});
    await echo.getByRole('img', { name: 'Batches by their rows: 2 of 1, 2 of 3.' }).waitFor();
    await echo.getByText('Not answered: 1 failed in the model').waitFor();
    const number = (name: string) =>
      echo.locator('.model-numbers > div', { has: page.getByText(name, { exact: true }) }).locator('dd');
    expect(await number('Answered').textContent()).toBe('3');
    expect(await number('Batches').textContent()).toBe('4');
    expect(await number('Mean rows').textContent()).toBe('2');
    expect(await number('Compute').textContent()).toMatch(/^\d+(\.\d)? (µs|ms)$/);

    // Both instances are kept busy.
    const held = [0, 1].map(() => models.numbers('echo', [[-1]]));
    await echo.getByText('2 instances: 2 busy').waitFor();
    expect(await number('Running').textContent()).toBe('2');
    await panel.getByText('0 requests waiting, 2 running').waitFor();
    writeFileSync(join(models.folder, 'echo/1/open'), '');
    await Promise.all(held);

    await models.repository.load(LONG_NAME);
    await panel.getByRole('status').getByText('2 models: 2 ready.').waitFor();
    await card(LONG_NAME).getByText('1 instance: idle').waitFor();
    await models.repository.unload(LONG_NAME);
    await card(LONG_NAME).getByText('Unloaded').waitFor();
    models.write(LONG_NAME, IO, 'throw new Error("There are no weights here.")');
    await models.repository.load(LONG_NAME).catch(() => {});
    await card(LONG_NAME).getByText('There are no weights here.').waitFor();
    await card(LONG_NAME).getByText('Unavailable', { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('leave nothing to complain of, in light and dark and on a narrow screen, and by keyboard', async () => {
    await models.numbers('echo', [[7]]);
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, problems, card, close } = await enter({
        colorScheme,
        viewport: { width: 360, height: 740 },
      });
      await card('echo')
        .getByRole('img', { name: /^Batches by their rows/ })
        .waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      expect(await page.evaluate(() => document.activeElement?.id)).toBe('models');
      expect(problems).toEqual([]);
      await close();
    }
  });

  it('stand beside the chat where a model generates text, also one that comes later', async () => {
    const texts = directoryOf();
    const repository = new FakeRepository([
      new FakeModel(fakeConfig({ name: 'squares', type: 'TYPE_FP32', dims: [1] })),
    ]);
    const toy = await serverOf(repository, { models: texts, state: new ServerState(texts) });
    const { page, problems, close } = await visit(browser(), toy.url);
    const panel = page.getByRole('region', { name: 'Models' });
    await panel.getByRole('heading', { name: 'squares' }).waitFor();
    expect(await page.getByRole('region', { name: 'Chat' }).count()).toBe(0);
    const chat = new FakeModel(fakeConfig({ name: 'toy', type: 'TYPE_STRING', dims: [1] }));
    Object.assign(chat, { kind: 'generator' });
    texts.add(toyModel(new FakeEngine(() => say('Here I am.'))));
    repository.add(chat);
    await page.getByRole('region', { name: 'Chat' }).waitFor();
    await panel.getByText('generates text').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Who are you?');
    await page.keyboard.press('Enter');
    await page.locator('.markdown').getByText('Here I am.').waitFor();
    expect(problems).toEqual([]);
    await close();
    await toy.close();
  });

  it('are left out where the only one generates text, and counted where they are very many', async () => {
    const generator = new FakeModel(fakeConfig({ name: 'toy', type: 'TYPE_STRING', dims: [1] }));
    Object.assign(generator, { kind: 'generator' });
    const many = Array.from(
      { length: 500 },
      (_, i) => new FakeModel(fakeConfig({ name: `model-${i}`, type: 'TYPE_FP32', dims: [1] })),
    );
    const repository = new FakeRepository([generator]);
    const toy = await listen(toyServer(() => say('x'), { platform: platformOf(repository) }));
    const { page, problems, close } = await visit(browser(), toy.url);
    const told = page.waitForResponse((response) => response.url().endsWith('/stats/models/stream'));
    await page.reload();
    await told;
    await page.getByText('Live', { exact: true }).waitFor();
    const panel = page.getByRole('region', { name: 'Models' });
    expect(await panel.count()).toBe(0);
    for (const model of many) repository.add(model);
    await panel.getByText('501 models: 501 ready.').waitFor();
    expect(await panel.getByRole('listitem').count()).toBe(50);
    await panel.getByText(/^451 more models are not shown: /).waitFor();
    expect(problems).toEqual([]);
    await close();
    await toy.close();
  });
}
