import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { postJson } from '../../../support/post-json.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
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
    page.setDefaultTimeout(15_000);
    const list = page.getByLabel('Model', { exact: true });
    const names = () => list.locator('option').allTextContents();
    await list.waitFor();
    expect(await names()).toEqual(['base', 'sql (adapter of base)']);
    await page.getByText('Live', { exact: true }).waitFor();
    await change('load', { lora_name: 'poet', lora_path: 'lora-rslora' });
    await list.getByText('poet (adapter of base)').waitFor({ state: 'attached' });
    await list.selectOption('poet');
    const asked = page.waitForRequest(/chat\/completions/);
    await page.getByRole('textbox', { name: 'Message' }).fill('Hello');
    await page.keyboard.press('Enter');
    expect((await asked).postDataJSON().model).toBe('poet');
    await change('unload', { lora_name: 'sql' });
    await list.getByText('sql (adapter of base)').waitFor({ state: 'detached' });
    expect(await list.inputValue()).toBe('poet');
    expect(problems).toEqual([]);
    await close();
  });
}
