import type { Browser, Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { bytesOf } from '../../support/toy-codec.js';
import { listen, toyServer } from '../../support/toy-server.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const MODEL = { maxInputLen: 60_000, maxSeqLen: 2_500_000, defaultMaxTokens: 2_400_000 };

const ANSWER = String.raw`So \(a^2\), $\sqrt{x}$ and \(\int_0^1 x\,dx\) cost $5 and $6:

$$
\boxed{\overbrace{a+b}^{c}} \quad \sqrt[3]{\frac{1}{\pmb{x}}}
$$

| a | b |
|---|---|
| $x_1$ | \(y\) |

~~~python
def fib(n):  # a comment
    return "x" if n < 2 else $5
~~~

~~~unknown-language
def $a$
~~~
`.replaceAll('~~~', '```');

/** What a formula of a model may be. */
const HOSTILE = [
  String.raw`\(\href{javascript:alert(1)}{x}\) and \(\url{https://elsewhere.example/}\)`,
  String.raw`\(\includegraphics{https://elsewhere.example/p.png}\)`,
  String.raw`\(\htmlStyle{position:fixed;inset:0}{x}\) \(\htmlId{prompt}{x}\) \(\htmlClass{panel}{x}\)`,
  String.raw`$$\def\a{\a\a}\a$$`,
  String.raw`$$\def\a#1{#1#1#1#1#1#1#1#1}\a{\a{\a{\a{\a{\a{x}}}}}}$$`,
  String.raw`$$\rule{999999em}{999999em}$$`,
  `$$${'{'.repeat(4000)}x${'}'.repeat(4000)}$$`,
  `$$${'\\sqrt'.repeat(1500)}x$$`,
  String.raw`\(\unknown\) \(\color{red;position:fixed}x\) \(\textcolor{url(https://elsewhere.example/)}{x}\)`,
  String.raw`\(\text{<img src=x onerror=alert(2)>}\)`,
].join('\n\n');

/** Formulas and code of an answer, under the page's policy. */
export function formulasSuite(browser: () => Browser): void {
  const closing: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  async function answered(...texts: string[]) {
    const script = (_: unknown, index: number) => [
      { tokens: [...bytesOf(texts[index]!)] },
      { finish: 'stop' as const },
    ];
    const server = await listen(toyServer(script, { model: MODEL }));
    closing.push(server.close);
    const { page, problems } = await visit(browser(), server.url);
    closing.push(() => page.context().close());
    await page.getByText('toy', { exact: true }).waitFor();
    for (const [index] of texts.entries()) {
      await page.getByLabel('Message', { exact: true }).fill('Show me');
      await page.keyboard.press('Enter');
      await page.getByText('Regenerate').nth(index).waitFor();
    }
    return { page, problems };
  }

  const texts = (page: Page, selector: string) => page.locator(selector).allTextContents();

  it('are drawn by KaTeX and coloured by highlight.js, and asked for when they are needed', async () => {
    const asked: string[] = [];
    const { page, problems } = await answered('No formula.', ANSWER);
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await expect.poll(() => page.locator('.math .katex').count()).toBe(6);
    const tex = await texts(page, '.math annotation');
    expect(tex.slice(0, 3)).toEqual(['a^2', '\\sqrt{x}', '\\int_0^1 x\\,dx']);
    expect(await page.locator('.markdown p').nth(1).textContent()).toContain('cost $5 and $6');
    // What KaTeX gives attributes of style keeps them, though the policy refuses these.
    const bold = page.locator('.math mstyle[style]').first();
    expect(await bold.evaluate((one) => (one as HTMLElement).style.cssText)).toContain('text-shadow');
    expect(
      await page
        .locator('.katex svg')
        .first()
        .evaluate(({ clientWidth }) => clientWidth),
    ).toBeGreaterThan(0);
    await page.evaluate(() => document.fonts.ready);
    const fonts = await page.evaluate(() =>
      [...document.fonts].filter(({ status }) => status === 'loaded').map(({ family }) => family),
    );
    expect(fonts).toContain('KaTeX_Math');
    await expect.poll(() => texts(page, '.hljs-keyword')).toEqual(['def', 'return', 'if', 'else']);
    expect(await texts(page, '.hljs-comment')).toEqual(['# a comment']);
    expect(await texts(page, '.code-block pre')).toEqual([
      'def fib(n):  # a comment\n    return "x" if n < 2 else $5',
      'def $a$',
    ]);
    // Screen readers get the formula as it was written, once.
    expect(await page.getByRole('log').textContent()).toContain('So \\(a^2\\), $\\sqrt{x}$ and');
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme });
      expect(await violations(page)).toEqual([]);
    }
    await page.reload();
    await expect.poll(() => page.locator('.math .katex').count()).toBe(6);
    expect(asked.filter((path) => path.endsWith('.woff2')).length).toBeGreaterThan(0);
    expect(problems).toEqual([]);
  });

  it('are not asked for without need', async () => {
    const { page, problems } = await answered('No formula, $5, and `code`.');
    const loaded = await page.evaluate(() =>
      performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1)),
    );
    expect(loaded).toContain('page.js');
    for (const name of ['math.js', 'math.css', 'code-worker.js']) expect(loaded).not.toContain(name);
    expect(problems).toEqual([]);
  });

  it('may be hostile: nothing is asked of elsewhere, covers the page, or takes its time', async () => {
    const { page, problems } = await answered(HOSTILE);
    await expect.poll(() => page.locator('.math .katex').count()).toBeGreaterThan(0);
    const found = await page.locator('.markdown').evaluate((root) => ({
      links: root.querySelectorAll('a, img').length,
      named: root.querySelectorAll('#prompt, .panel').length,
      fixed: [...root.querySelectorAll('*')].filter((one) => getComputedStyle(one).position === 'fixed')
        .length,
      width: document.documentElement.scrollWidth,
      nodes: root.querySelectorAll('*').length,
    }));
    expect(found).toMatchObject({ links: 0, named: 0, fixed: 0, width: 1280 });
    expect(found.nodes).toBeLessThan(100_000);
    expect(await page.locator('.markdown').textContent()).toContain('\\unknown');
    await page.getByRole('button', { name: 'New chat' }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('may be long: a megabyte of code stays text, and the page goes on', async () => {
    const line = 'def f(x): return "a" + x  # a comment\n';
    const code = line.repeat(Math.ceil(1_000_000 / line.length));
    const { page, problems } = await answered(`\`\`\`python\n${code}\`\`\`\n\nDone: $x$.`);
    const block = page.locator('.code-block code');
    expect((await block.textContent())!.length).toBe(code.length - 1);
    expect(await block.locator('span').count()).toBe(0);
    await expect.poll(() => page.locator('.math .katex').count()).toBe(1);
    await page.getByRole('button', { name: 'New chat' }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(0);
    expect(problems).toEqual([]);
  });
}
