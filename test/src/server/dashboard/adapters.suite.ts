import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { postJson } from '../../../support/post-json.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const fixtures = fileURLToPath(new URL('../../../fixtures', import.meta.url));

/** LoRA adapters in the list of models, as they come and go. */
export function adaptersSuite(browser: () => Browser): void {
  let server: SkeinProcess;
  beforeAll(async () => {
    const atRunTime = ['--allow-runtime-lora', '--lora-dir', fixtures];
    const model = ['--model', `base=${tinyModelPath('gqa')}`, '--lora', `sql=${fixtures}/lora-plain`];
    server = await startServer([...model, ...atRunTime]);
  });
  afterAll(() => server?.stop());

  const change = (what: string, body: object) => postJson(`${server.url}/v1/${what}_lora_adapter`, body);

  it('are listed with their base, chosen and asked, and come and go without a reload', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    const list = page.getByLabel('Model', { exact: true });
    const names = () => list.locator('option').allTextContents();
    await list.waitFor();
    expect(await names()).toEqual(['base', 'sql']);
    expect(await list.locator('optgroup').getAttribute('label')).toBe('base and its LoRA adapters');
    await page.getByText('Live', { exact: true }).waitFor();
    await change('load', { lora_name: 'poet', lora_path: 'lora-rslora' });
    await list.getByText('poet').waitFor({ state: 'attached' });
    expect(await page.getByText('LoRA adapter of base').count()).toBe(0);
    await list.selectOption('poet');
    await page.getByText('LoRA adapter of base').waitFor();
    const asked = page.waitForRequest(/chat\/completions/);
    await page.getByRole('textbox', { name: 'Message' }).fill('Hello');
    await page.keyboard.press('Enter');
    expect((await asked).postDataJSON().model).toBe('poet');
    await change('unload', { lora_name: 'sql' });
    await list.getByText('sql').waitFor({ state: 'detached' });
    expect(await list.inputValue()).toBe('poet');
    expect(problems).toEqual([]);
    await change('unload', { lora_name: 'poet' });
    await change('load', { lora_name: 'sql', lora_path: 'lora-plain' });
    await close();
  });

  it('that go are asked no more, and nobody in their place, until the reader chooses or they come back', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    const list = page.getByLabel('Model', { exact: true });
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('chat/completions')) asked.push(request.postDataJSON().model);
    });
    const ask = async (text: string) => {
      await page.getByRole('textbox', { name: 'Message' }).fill(text);
      await page.keyboard.press('Enter');
    };
    await list.selectOption('sql');
    await page.getByText('Live', { exact: true }).waitFor();
    const up = page.getByText(/^up \d+ s|^up \d+ min/);
    await up.waitFor();
    await ask('Hello');
    await page.getByRole('button', { name: 'Regenerate' }).waitFor();
    await change('unload', { lora_name: 'sql' });
    await page.getByText('sql is gone', { exact: true }).waitFor();
    expect(await list.locator('option').allTextContents()).toEqual(['sql (gone)', 'base']);
    expect(await list.inputValue()).toBe('sql');
    const notice = '“sql” is not served any more. Choose another model at the top of the page';
    await page.getByRole('status').getByText(`${notice}; it gets this conversation.`).waitFor();
    await ask('And now?');
    await page.getByRole('alert').getByText(`${notice}.`).waitFor();
    expect(asked).toEqual(['sql']);
    expect(await violations(page)).toEqual([]);
    // It comes back: the page continues by itself.
    await change('load', { lora_name: 'sql', lora_path: 'lora-plain' });
    await page.getByText('Live', { exact: true }).waitFor();
    expect(await list.locator('option').allTextContents()).toEqual(['base', 'sql']);
    await change('unload', { lora_name: 'sql' });
    await page.getByText('sql is gone', { exact: true }).waitFor();
    await list.selectOption('base');
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(() => asked).toEqual(['sql', 'base']);
    await expect.poll(() => page.getByText('is not served any more').count()).toBe(0);
    expect(await page.locator('.header-model').textContent()).toBe('base');
    expect(problems).toEqual([]);
    await close();
    await change('load', { lora_name: 'sql', lora_path: 'lora-plain' });
  });

  it('are in the table of what is in flight', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('In flight as a table').click();
    let isSeen = false;
    // Their number and their different lengths keep them from ending together, so the engine never rests:
    // when it does, nothing is in flight.
    const bodies = Array.from({ length: 12 }, (_, i) => {
      const model = i % 2 === 0 ? 'sql' : 'base';
      return { prompt: 'x', max_tokens: 60 + 13 * i, ignore_eos: true, model };
    });
    const asking = bodies.map(async (body) => {
      while (!isSeen) expect((await postJson(`${server.url}/v1/completions`, body)).status).toBe(200);
    });
    const table = page.locator('details.as-table');
    const cells = () => table.locator('tbody td:last-child').allTextContents();
    try {
      await expect.poll(async () => new Set(await cells())).toEqual(new Set(['sql', '–']));
      expect(await table.getByRole('columnheader').last().textContent()).toBe('Adapter');
    } finally {
      isSeen = true;
      await Promise.all(asking);
    }
    expect(problems).toEqual([]);
    await close();
  });
}
