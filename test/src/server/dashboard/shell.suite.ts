import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createApp } from '../../../../src/server/app/app.js';
import { ServerMetrics } from '../../../../src/server/metrics/families/server-metrics.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import { ModelState } from '../../../../src/serving/model-state.js';
import type { ServedModel } from '../../../../src/serving/served-model.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { directoryOf, ToldStatistics } from '../../support/served-models.js';
import { listen, say, toyModel, toyServer } from '../../support/toy-server.js';
import { visit } from './support/browser.js';

/** It is listed by GET /v1/models, and cannot chat. */
const ENCODER = {
  kind: 'encoder',
  id: 'embedder',
  aliases: [],
  created: 0,
  maxSeqLen: 8,
  state: new ModelState(),
  statistics: new ToldStatistics(() => ({ running: 0, waiting: 0 })),
} as unknown as ServedModel;

/** The frame around all panels: loading, colours, the key, the connection. */
export function shellSuite(browser: () => Browser): void {
  const open = toyServer(() => say('x'));
  const locked = toyServer(() => say('x'), {
    apiKeys: new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]),
  });
  let servers: { url: string; close: () => Promise<void> }[] = [];
  beforeAll(async () => {
    servers = await Promise.all([listen(open), listen(locked)]);
  });
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  it('loads all that it needs from here, under a policy that allows no more', async () => {
    const { page, problems, close } = await visit(browser(), servers[0]!.url);
    await page.getByText('Live').waitFor();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Skein');
    expect(await page.locator('.header-model').textContent()).toBe('toy');
    // The browser refuses what a mistake of the page would do.
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML = '<p>made of text</p>';
        return false;
      } catch {
        return true;
      }
    });
    expect(refused).toBe(true);
    expect(
      problems
        .splice(0)
        .every((problem) => problem.includes('trusted-types') || problem.includes('TrustedHTML')),
    ).toBe(true);
    await close();
  });

  it('asks for the key that the server wants, and keeps it in the tab', async () => {
    const { page, problems, close } = await visit(browser(), servers[1]!.url);
    const dialog = page.getByRole('dialog', { name: 'API key' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Needs an API key').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Hello');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('This server needs an API key.').waitFor();
    await page.keyboard.type('opensesame');
    await page.keyboard.press('Enter');
    await dialog.getByText('does not know the key').waitFor();
    await dialog.getByLabel('API key').fill('sesame');
    await page.keyboard.press('Enter');
    await page.getByText('Live').waitFor();
    await expect.poll(() => dialog.isVisible()).toBe(false);
    await page.reload();
    await page.getByText('Live').waitFor();
    const { local, tab } = await page.evaluate(() => ({
      local: localStorage.length,
      tab: sessionStorage.length,
    }));
    expect([local, tab]).toEqual([0, 1]);
    expect(problems).toEqual([]);
    await close();
  });

  it('follows the colours of the system, and the switch', async () => {
    const { page, problems, close } = await visit(browser(), servers[0]!.url, { colorScheme: 'dark' });
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const dark = await ground();
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    expect(light).not.toBe(dark);
    await page.getByRole('button', { name: 'Dark colours' }).click();
    expect(await ground()).toBe(dark);
    await page.reload();
    expect(await ground()).toBe(dark);
    await page.getByRole('button', { name: 'Light colours' }).click();
    expect(await ground()).toBe(light);
    expect(problems).toEqual([]);
    await close();
  });

  it('lists the models that generate text, and asks the one that is chosen', async () => {
    const engines = ['one', 'two'].map((name) => new FakeEngine(() => say(`I am ${name}.`)));
    const [one, two] = engines.map((engine, index) => toyModel(engine, { id: ['one', 'two'][index]! }));
    const models = directoryOf(one!, ENCODER, two!);
    const app = createApp({
      models,
      state: new ServerState(models),
      metrics: new ServerMetrics(models),
      version: '0.0.0-test',
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    });
    const server = await listen({ app });
    const { page, problems, close } = await visit(browser(), server.url);
    const model = page.getByRole('combobox', { name: 'Model' });
    await model.waitFor();
    expect(await model.locator('option').allTextContents()).toEqual(['one', 'two']);
    for (const name of ['one', 'two']) {
      await model.selectOption(name);
      await page.getByLabel('Message', { exact: true }).fill('Who are you?');
      await page.keyboard.press('Enter');
      await page.locator('.markdown').getByText(`I am ${name}.`).waitFor();
    }
    expect(problems).toEqual([]);
    await close();
    await server.close();
  });
}
