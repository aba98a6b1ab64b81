import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FormationListener } from '../../../../callbacks/formation.js';
import { listen, say, toyServer } from '../../support/toy-server.js';
import { formation } from './formation/simulated-feed.js';
import { visit } from './support/browser.js';

/** An engine that says what is in flight when the test wants it. */
class Watched {
  tell: FormationListener = () => {};
  watchers = 0;
  onStats = () => () => {};
  statsJson = () => '{"Iteration Counter":0}';
  watchFormation = (listener: FormationListener) => {
    this.tell = listener;
    this.watchers++;
    return () => this.watchers--;
  };
}

const row = (id: number, state: number, generated: number, blocks: number) =>
  [id, '', state, 900, 40, 40, 40, generated, 64, blocks, 8, 0, 12, 118] as const;

/** The live picture: what a visitor sees of it, and what a screen reader says. */
export function formationSuite(browser: () => Browser): void {
  const watch = new Watched();
  const toy = toyServer(() => say('one two three'), { model: { watch } });
  let server: { url: string; close: () => Promise<void> };
  beforeAll(async () => {
    server = await listen(toy);
  });
  afterAll(() => server.close());

  const now = (iteration: number, fields: Parameters<typeof formation>[2]) => ({
    ...formation(0, iteration, fields),
    timeMs: Date.now(),
  });

  it('stays in its place while it says more or less', async () => {
    for (const width of [1440, 1081, 768, 360]) {
      const { page, problems, close } = await visit(browser(), server.url, {
        viewport: { width, height: 900 },
      });
      await expect.poll(() => watch.watchers).toBe(1);
      const places = () =>
        page.evaluate(() =>
          ['.blocks-head h3', '.blocks-canvas', '.as-table'].map(
            (one) => document.querySelector(`#formation ${one}`)!.getBoundingClientRect().top,
          ),
        );
      await page.getByText('Nothing is known yet.').waitFor();
      const before = await places();
      const runs = [128, 0, 128, 1, 40, -3, 1200, -2, 14_888, -1];
      const requests = [[...row(7, 2, 31, 128)], [...row(8, 1, 0, 128)]] as never;
      watch.tell(now(5, { requests, blocks: { count: 16_384, tokensPerBlock: 32, runs }, queued: 3 }));
      await page.getByText(/used by 2 requests/).waitFor();
      await page.getByRole('button', { name: 'Whole pool' }).waitFor();
      expect(await places(), `${width} pixels`).toEqual(before);
      expect(problems).toEqual([]);
      await close();
      await expect.poll(() => watch.watchers).toBe(0);
    }
  });

  it('shows who is in flight and whose the blocks are, in words and by keyboard too', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    await page.getByText('Live').waitFor();
    const panel = page.getByRole('region', { name: 'Formation' });
    await expect.poll(() => watch.watchers).toBe(1);
    const blocks = { count: 20, tokensPerBlock: 32, runs: [3, 0, 2, 1, 1, -3, 4, -2, 10, -1] };
    const requests = [[...row(7, 2, 31, 3)], [...row(8, 1, 0, 2)]] as never;
    const stateSlots = { slots: 4, usedSlots: 2, snapshots: 30, keptSnapshots: 7, hits: 1, lost: 3 };
    watch.tell(now(5, { requests, blocks, queued: 3, stateSlots }));
    await panel.getByText('2 in flight: 1 generating, 1 reading its prompt. 3 waiting.').waitFor();
    const said = '20 blocks of 32 tokens · 5 used by 2 requests · 1 shared · 4 cached · 10 free';
    await panel.getByText(said).waitFor();
    const states =
      'States: 2 of 4 slots used · 7 of 30 snapshots kept · 1 prompt began with one · 3 computed cached blocks again for want of one';
    await panel.getByText(states).waitFor();
    const list = panel.getByRole('listbox');
    await list.focus();
    await page.keyboard.press('ArrowDown');
    await panel
      .getByRole('option', { name: /^Request 7: generating; .* generated 31 of 64/, selected: true })
      .waitFor({ state: 'attached' });
    await page.keyboard.press('End');
    await panel.getByText('reading its prompt', { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await panel.getByText('In flight as a table').click();
    await expect
      .poll(() => panel.getByRole('row', { name: /^7 generating 40 8 31 of 64 3 118 ms 0/ }).count())
      .toBe(1);
    // They end; what is left of them is in the picture, and the words say so.
    const ended = [
      [7, '', 'stop', -10, 1200, 40, 40, 8],
      [8, '', 'cancelled', -5, 900, 40, 0, 8],
    ] as never;
    watch.tell(now(9, { ended }));
    // A model that has no states.
    await panel.getByText(states).waitFor({ state: 'hidden' });
    await panel.locator('.details').getByText('Nothing in flight.').waitFor();
    await expect.poll(() => list.getByRole('option').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('shows the part of a large pool that is used, or all of it', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    await page.getByText('Live').waitFor();
    const panel = page.getByRole('region', { name: 'Formation' });
    const whole = panel.getByRole('button', { name: 'Whole pool' });
    await expect.poll(() => watch.watchers).toBe(1);
    const blocks = { count: 9000, tokensPerBlock: 32, runs: [3, 0, 8997, -1] };
    watch.tell(now(5, { requests: [row(7, 2, 31, 3)] as never, blocks }));
    await panel.getByText('8,997 free · the first 64 shown').waitFor();
    await whole.click();
    await expect.poll(() => panel.locator('.blocks-text').textContent()).not.toContain('shown');
    await whole.click();
    await panel.getByText('the first 64 shown').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('sends many prompts at once, and stops them', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    const panel = page.getByRole('region', { name: 'Formation' });
    await page.getByText('Live').waitFor();
    await panel.getByLabel('Prompts').selectOption('8');
    await panel.getByLabel('Lengths').selectOption('short');
    await panel.getByRole('button', { name: 'Send 8 prompts' }).first().click();
    await panel.getByText('8 of 8 prompts answered').waitFor();
    await expect.poll(() => panel.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
    expect(problems).toEqual([]);
    await close();
  });

  it('charts the latest minute, and says the values of now', async () => {
    const { page, problems, close } = await visit(browser(), server.url, {
      viewport: { width: 360, height: 800 },
    });
    await page.getByText('Live').waitFor();
    const panel = page.getByRole('region', { name: 'Charts' });
    const before = Date.now();
    watch.tell({ ...formation(0, 10), timeMs: before - 1000 });
    const latency = { firstToken: { count: 3, p50: 118, p90: 240, p99: 1260 }, interToken: null };
    watch.tell({ ...formation(0, 110, { latency }), timeMs: before });
    await panel.getByRole('img', { name: /^Tokens per second .* generated 2,000, prompt 5,000/ }).waitFor();
    await panel.getByRole('img', { name: /p50 118 ms, p90 240 ms, p99 1.26 s/ }).waitFor();
    await expect.poll(() => panel.locator('canvas').count()).toBe(6);
    const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(await tooWide()).toBeLessThanOrEqual(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('plays the same work under the three schemes in step', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    const panel = page.getByRole('region', { name: 'Schemes side by side' });
    await panel.getByRole('img', { name: /^V1: .*slots empty/ }).waitFor();
    await expect.poll(() => panel.getByRole('row', { name: /^InflightFusedBatching/ }).count()).toBe(1);
    const tokens = () => panel.locator('.scheme-tokens').allTextContents();
    const atEnd = await tokens();
    expect(new Set(atEnd).size).toBe(1);
    await panel.getByRole('slider', { name: 'Time' }).fill('2000');
    const [v1, inflight, fused] = (await tokens()).map((text) => Number.parseInt(text, 10));
    expect(fused).toBeGreaterThan(v1!);
    expect(inflight).toBeGreaterThan(v1!);
    await panel.getByRole('button', { name: 'Play' }).click();
    await panel.getByRole('button', { name: 'Pause' }).click();
    await panel.getByRole('switch', { name: 'Side by side' }).click();
    await expect.poll(() => panel.getByRole('slider').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
}
