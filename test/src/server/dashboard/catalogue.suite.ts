import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { OFFERED } from '../../../../src/hub/offered-models.js';
import { createApp } from '../../../../src/server/app/app.js';
import { ServerMetrics } from '../../../../src/server/metrics/families/server-metrics.js';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { ServerState } from '../../../../src/server/web/server-state.js';
import { FakeHub, type HubFile } from '../../../support/fake-hub.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { type CatalogueOptions, catalogueLife } from '../../support/catalogue-server.js';
import { FakeEngine } from '../../support/fake-engine.js';
import { directoryOf } from '../../support/served-models.js';
import { listen, say, toyModel } from '../../support/toy-server.js';
import { FakeModel, FakeRepository, fakeConfig } from '../kserve/support/fake-models.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const ID = OFFERED[0]!.name;
const FILES = new Map<string, HubFile>([
  ['config.json', { content: Buffer.from('{}'), isLarge: false }],
  ['model.safetensors', { content: Buffer.alloc(3_000_000, 7), isLarge: true }],
]);

/** What fits this machine: lists, downloads, and the way from an empty server to a chat. */
export function catalogueSuite(browser: () => Browser): void {
  const makeFolder = freshFolders('skein-page-catalogue');
  let hub: FakeHub;
  let server: { url: string; close: () => Promise<void> } | undefined;
  beforeEach(async () => {
    hub = await FakeHub.start(ID, FILES);
  });
  afterEach(async () => {
    await server?.close();
    await hub.close();
  });

  /** A server without any model, whose stored models are loaded when they are asked for. */
  async function begin(options: Partial<CatalogueOptions> & { apiKeys?: ApiKeys } = {}): Promise<string> {
    const models = directoryOf();
    const repository = new FakeRepository([]);
    const folder = options.folder ?? makeFolder();
    const life = catalogueLife({
      endpoint: hub.endpoint,
      models,
      memoryBytes: 1e9,
      bytesPerSecond: 300e6,
      borrow: async (name) => {
        if ((await life.store.find(name)) === null) return null;
        const model = models.find(name) ?? toyModel(new FakeEngine(() => say('Here I am.')), { id: name });
        if (models.find(name) === undefined) {
          models.add(model);
          const told = new FakeModel(fakeConfig({ name, type: 'TYPE_STRING', dims: [1] }));
          repository.add(Object.assign(told, { kind: 'generator' }));
        }
        return { model, release: () => {} };
      },
      ...options,
      folder,
    });
    const app = createApp({
      models,
      state: new ServerState(models),
      metrics: new ServerMetrics(models),
      version: '0.0.0-test',
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      platform: { repository, serverId: 'skein', allowsUpload: false, sharedMemory: null },
      life,
      ...(options.apiKeys !== undefined && { apiKeys: options.apiKeys }),
    });
    server = await listen({ app });
    return server.url;
  }

  it('lead from an empty server to a chat, by the keyboard alone', async () => {
    const { page, problems, close } = await visit(browser(), await begin());
    const panel = page.getByRole('region', { name: 'Models for this machine' });
    const row = panel.getByRole('listitem').filter({ has: page.getByRole('heading', { name: ID }) });
    await row.getByText('fits, with 8,192 tokens of context').waitFor();
    await row.getByText('up to 100 tokens/s').waitFor();
    await row.getByText('On the hub').waitFor();
    expect(await page.getByRole('region', { name: 'Chat' }).count()).toBe(0);

    // The skip link leads to the list.
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('catalogue');

    // Half of it comes, and then nothing any more.
    hub.troubles.push({ path: 'model.safetensors', stalls: 1_500_000 });
    await row.getByRole('button', { name: `Download ${ID}` }).focus();
    await page.keyboard.press('Enter');
    const bar = row.getByRole('progressbar', { name: `Download of ${ID}` });
    await bar.waitFor();
    await row.getByText(/^50 % of 3 MB/).waitFor();
    await panel.getByRole('status').getByText(`${ID} is being downloaded.`).waitFor();
    // The same button now ends it, and has kept the focus.
    await row.getByRole('button', { name: `Cancel ${ID}` }).waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(`Cancel ${ID}`);
    await page.keyboard.press('Enter');
    await panel.getByRole('status').getByText('what has come is kept').waitFor();
    await row.getByRole('button', { name: `Resume ${ID}` }).waitFor();
    await row.getByText('Partly here').waitFor();
    expect(await bar.evaluate((one: HTMLProgressElement) => one.value)).toBe(1_500_002);
    await page.keyboard.press('Enter');
    await row.getByText('Here', { exact: true }).waitFor();
    expect(await bar.isVisible()).toBe(false);

    await row.getByRole('button', { name: `Use ${ID}` }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Chat' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await page.locator('.header-model').textContent()).toBe(ID);
    await page.getByLabel('Message', { exact: true }).fill('Who are you?');
    await page.keyboard.press('Enter');
    await page.locator('.markdown').getByText('Here I am.').waitFor();
    // Beside a chat the list is folded.
    expect(await row.isVisible()).toBe(false);
    expect(problems).toEqual([]);
    await close();
  });

  it('say what went wrong: a name that the hub does not have, a hub that is away, a model that cannot be read', async () => {
    const folder = makeFolder();
    mkdirSync(join(folder, 'broken'));
    for (const file of ['config.json', 'model.safetensors']) writeFileSync(join(folder, 'broken', file), 'x');
    const measure = async () => {
      throw new Error('It has no layers.');
    };
    const { page, problems, close } = await visit(browser(), await begin({ folder, measure }));
    const panel = page.getByRole('region', { name: 'Models for this machine' });
    await panel.getByText('It has no layers.').waitFor();
    expect(await panel.getByRole('button', { name: 'Use broken' }).count()).toBe(0);
    const other = panel.getByLabel('Another model of the hub');
    await other.fill('org/other');
    await page.keyboard.press('Enter');
    await panel
      .getByRole('status')
      .getByText(/has no model org\/other/)
      .waitFor();
    hub.status = 503;
    await other.fill('org/third');
    await page.keyboard.press('Enter');
    await panel
      .getByRole('status')
      .getByText(/answers 503 when asked for org\/third/)
      .waitFor();
    expect(await other.inputValue()).toBe('org/third');
    expect(problems).toEqual([]);
    await close();
  });

  it('can only be used by those who are no admins, who are told so', async () => {
    const apiKeys = new ApiKeys([
      { key: 'sesame', name: 'ali', weight: 1 },
      { key: 'admin', name: 'a', weight: 1, admin: true },
    ]);
    const folder = makeFolder();
    writeFileSync(join(folder, 'mine.gguf'), 'x');
    const { page, problems, close } = await visit(browser(), await begin({ folder, apiKeys }));
    const dialog = page.getByRole('dialog', { name: 'API key' });
    await dialog.waitFor();
    const panel = page.getByRole('region', { name: 'Models for this machine' });
    expect(await panel.count()).toBe(0);
    await dialog.getByLabel('API key').fill('sesame');
    await page.keyboard.press('Enter');
    await panel
      .getByText(/^Models can be used here, but not downloaded\. The API key 'ali' may not/)
      .waitFor();
    await panel.getByRole('button', { name: 'Use mine' }).waitFor();
    expect(await panel.getByRole('button').count()).toBe(1);
    expect(await panel.getByLabel('Another model of the hub').isVisible()).toBe(false);
    expect(hub.questions).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('leave nothing to complain of, in light and dark and on a narrow screen', async () => {
    const url = await begin();
    hub.troubles.push({ path: 'model.safetensors', stalls: true });
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, problems, close } = await visit(browser(), url, {
        colorScheme,
        viewport: { width: 360, height: 740 },
      });
      const panel = page.getByRole('region', { name: 'Models for this machine' });
      if (colorScheme === 'light') await panel.getByRole('button', { name: `Download ${ID}` }).click();
      await panel.getByRole('progressbar').waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
      expect(problems).toEqual([]);
      await close();
    }
  });
}
