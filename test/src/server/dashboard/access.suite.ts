import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Step } from '../../support/fake-engine.js';
import { bytesOf } from '../../support/toy-codec.js';
import { listen, toyServer } from '../../support/toy-server.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const ANSWER = `# A title

Some *text* with \`code\` and a [link](https://elsewhere.example/).

| a | b |
|---|---|
| 1 | 2 |

\`\`\`js
honk('${'very '.repeat(40)}long')
\`\`\`

${'antidisestablishmentarianism'.repeat(12)}`;

/** The page for people without a mouse, without sight, or with a narrow screen. */
export function accessSuite(browser: () => Browser): void {
  const script = (): Step[] => [
    { tokens: [...bytesOf(ANSWER)] },
    { waitMs: 30 },
    { tokens: [...bytesOf('.')] },
    { finish: 'stop' },
  ];
  const name = `organization/${'a-very-long-model-name-'.repeat(5)}q4`;
  const toy = toyServer(script, {
    model: { id: name, maxInputLen: 9000, maxSeqLen: 16_384, defaultMaxTokens: 8000 },
  });
  let server: { url: string; close: () => Promise<void> };
  beforeAll(async () => {
    server = await listen(toy);
  });
  afterAll(() => server?.close());

  it('leaves nothing to complain of, empty or with an answer, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, problems, close } = await visit(browser(), server.url, { colorScheme });
      await page.getByText('Say something').waitFor();
      await page.getByRole('button', { name: 'Parameters' }).click();
      expect(await violations(page)).toEqual([]);
      await page.getByLabel('Message', { exact: true }).fill('Hello');
      await page.keyboard.press('Enter');
      await page.getByText('Regenerate').waitFor();
      expect(await violations(page)).toEqual([]);
      expect(problems).toEqual([]);
      await close();
    }
  });

  it('can be used by keyboard alone, and says the answer to who does not see it', async () => {
    const { page, problems, close } = await visit(browser(), server.url);
    await page.getByText(name).waitFor();
    const focused = () =>
      page.evaluate(() => {
        const element = document.activeElement as HTMLElement;
        const { outlineStyle } = getComputedStyle(element);
        const box = getComputedStyle(element.closest('.composer-box') ?? element);
        const isSeen = outlineStyle !== 'none' || box.boxShadow !== 'none';
        return { name: element.getAttribute('aria-label') ?? element.textContent, isSeen };
      });
    const names: (string | null)[] = [];
    for (let step = 0; step < 16; step++) {
      await page.keyboard.press('Tab');
      const { name, isSeen } = await focused();
      expect(isSeen, `${name} shows that it has the focus`).toBe(true);
      names.push(name);
      if (name === 'Message') break;
    }
    expect(names[0]).toBe('Skip to the chat');
    expect(names).toContain('Message');
    await page.evaluate(() => {
      const told: string[] = [];
      Object.assign(globalThis, { told });
      const live = document.querySelector('[role="log"]')!;
      const note = (changes: MutationRecord[]) => {
        for (const { addedNodes } of changes)
          for (const node of addedNodes) told.push(node.textContent ?? '');
      };
      new MutationObserver(note).observe(live, { childList: true });
    });
    await page.keyboard.type('Hello');
    await page.keyboard.press('Enter');
    await page.getByText('Regenerate').waitFor();
    const told = await page.evaluate(() => (globalThis as unknown as { told: string[] }).told);
    expect(told[0]).toBe('Answering');
    // Each block once, and not each token.
    expect(told.slice(1, 3)).toEqual(['A title', 'Some text with code and a link.']);
    expect(told[4]).toMatch(/^honk\('very/);
    expect(told).toHaveLength(6);
    expect((await focused()).name).toBe('Message');
    expect(problems).toEqual([]);
    await close();
  });

  it('fits a screen of 360 pixels, long names and words too', async () => {
    const { page, problems, close } = await visit(browser(), server.url, {
      viewport: { width: 360, height: 740 },
    });
    await page.getByText(name).waitFor();
    await page.getByLabel('Message', { exact: true }).fill('word'.repeat(100));
    await page.keyboard.press('Enter');
    await page.getByText('Regenerate').waitFor();
    await page.getByRole('button', { name: 'Parameters' }).click();
    const widths = await page.evaluate(() => ({
      page: document.documentElement.scrollWidth,
      chat:
        document.querySelector('.chat-log')!.scrollWidth - document.querySelector('.chat-log')!.clientWidth,
    }));
    expect(widths).toEqual({ page: 360, chat: 0 });
    await page.getByText('About the model').click();
    await page.locator('.facts-list').getByText('Context', { exact: true }).waitFor();
    const facts = await page.locator('.facts-menu').boundingBox();
    expect(facts!.x).toBeGreaterThanOrEqual(0);
    expect(facts!.x + facts!.width).toBeLessThanOrEqual(360);
    expect(problems).toEqual([]);
    await close();
  });
}
