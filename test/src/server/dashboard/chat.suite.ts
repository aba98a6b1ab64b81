import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import type { Step } from '../../support/fake-engine.js';
import { bytesOf, templatedCodec } from '../../support/toy-codec.js';
import { listen, say, type ToyServer, toyServer } from '../../support/toy-server.js';
import { violations } from './support/axe.js';
import { type Visit, visit } from './support/browser.js';

const MODEL = { maxInputLen: 60_000, maxSeqLen: 65_536, defaultMaxTokens: 60_000 };

/** Says a text in pieces, with a pause after each. */
function slowly(pieces: readonly string[], waitMs: number): Step[] {
  const steps = pieces.flatMap((text): Step[] => [{ tokens: [...bytesOf(text)] }, { waitMs }]);
  return [...steps, { finish: 'stop' }];
}

const HOSTILE = [
  '<img src=x onerror="alert(1)"><script>alert(2)</script>',
  '<iframe srcdoc="<script>parent.alert(3)</script>"></iframe>\n\n<svg onload=alert(4)>',
  '[one](javascript:alert(5)) [two](JaVaScRiPt:alert(6)) [three](data:text/html,<script>alert(7)</script>) [four](vbscript:x)',
  '![picture](https://elsewhere.example/p.png) <https://elsewhere.example/auto> [safe](https://elsewhere.example/a"onmouseover="alert(8))',
  '`<b>code</b>` &lt;i&gt; &#60;u&#62; <b>bold</b> | <a href="javascript:alert(9)">link</a>',
  '| a | <td onclick=alert(10)> |\n|---|---|\n| <img src=y onerror=alert(11)> | 2 |',
  `${'>'.repeat(3000)} deep`,
  '```html\n<img src=z onerror=alert(12)>\n</code></pre><script>alert(13)</script>',
].join('\n\n');

/** A chat template of a model that reasons. */
const THINKING =
  "{{ messages }}{% if enable_thinking is defined %}{% endif %}{{ content.split('</think>') }}";

/** The chat box, against the server's own routes over engines with a script. */
export function chatSuite(browser: () => Browser): void {
  const servers: { url: string; close: () => Promise<void> }[] = [];
  const visits: Visit[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  /** A page of a server with this script. */
  async function open(
    toy: ToyServer,
    options: Parameters<typeof visit>[2] = {},
  ): Promise<Visit & { server: { close: () => Promise<void> } }> {
    const server = await listen(toy);
    servers.push(server);
    const made = await visit(browser(), server.url, options);
    visits.push(made);
    await made.page.getByText('toy', { exact: true }).waitFor();
    return { ...made, server };
  }

  async function ask(page: Page, text: string): Promise<void> {
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
  }

  /** Prompts as the template made them, of which each token is a byte. */
  const asked = (toy: ToyServer) =>
    toy.engine.requests.map(({ promptTokens }) => String.fromCharCode(...promptTokens));

  it('answers as Markdown, with what it took, and goes on with what was said', async () => {
    const toy = toyServer(
      () => slowly(['# Geese\n\nThey **fly** in a', ' V:\n\n- one\n- two\n\n```js\nflap(', ');\n```\n'], 15),
      { model: MODEL },
    );
    const { page, problems, close } = await open(toy);
    await ask(page, 'Tell me');
    const answer = page.locator('.answer').first();
    await answer.getByText('Regenerate').waitFor();
    const body = answer.locator('.markdown');
    expect(await body.locator('h3').textContent()).toBe('Geese');
    expect(await body.locator('strong').textContent()).toBe('fly');
    expect(await body.locator('li').allTextContents()).toEqual(['one', 'two']);
    expect(await body.locator('pre').textContent()).toBe('flap();');
    expect(await answer.locator('.figures').textContent()).toMatch(
      /^first token [\d.]+ m?s \u00b7 [\d.]+ tokens\/s \u00b7 \d+ tokens$/,
    );
    await ask(page, 'More');
    await page.locator('.answer').nth(1).getByText('Regenerate').waitFor();
    const [, second] = asked(toy);
    expect(second).toMatch(/Tell me[\s\S]*They \*\*fly\*\*[\s\S]*More/);
    // Shift+Enter begins a line and sends nothing.
    await page.getByLabel('Message', { exact: true }).press('Shift+Enter');
    expect(toy.engine.requests).toHaveLength(2);
    await page.getByRole('button', { name: 'New chat' }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('keeps conversations over a reload, in a list, and in files', async () => {
    const toy = toyServer(() => say('As it was.'), { model: MODEL });
    const { page, problems, close } = await open(toy);
    await ask(page, 'First question');
    await page.getByText('Regenerate').waitFor();
    await page.reload();
    await page.locator('.answer').getByText('As it was.').waitFor();
    // What was kept is no news.
    expect(await page.getByRole('log').getByText('As it was.').count()).toBe(0);
    await ask(page, 'And then?');
    await page.getByText('Regenerate').nth(1).waitFor();
    expect(asked(toy)[1]).toMatch(/First question[\s\S]*As it was\.[\s\S]*And then\?/);
    await page.getByRole('button', { name: 'New chat' }).click();
    await ask(page, 'Second conversation');
    await page.getByText('Regenerate').waitFor();
    const menu = page.locator('.chats');
    await menu.locator('summary').click();
    await menu.getByText('First question').waitFor();
    expect(await menu.locator('.chats-open span').allTextContents()).toEqual([
      'Second conversation',
      'First question',
    ]);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      menu.getByRole('button', { name: 'Export all' }).click(),
    ]);
    const file = await download.path();
    await menu.getByRole('button', { name: 'Delete First question' }).click();
    await expect.poll(() => menu.locator('.chats-open').count()).toBe(1);
    await menu.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => menu.locator('.chats-open').count()).toBe(2);
    await menu.getByRole('button', { name: 'Rename Second conversation' }).click();
    await menu.getByLabel('Title').fill('Another name');
    await menu.getByLabel('Title').press('Enter');
    await menu.getByText('Another name').waitFor();
    await menu.locator('summary').press('Escape');
    await expect.poll(() => menu.getByText('Another name').isVisible()).toBe(false);
    // What is asked next leaves the title as it is.
    await ask(page, 'More of it');
    await page.getByText('Regenerate').nth(1).waitFor();
    await menu.locator('summary').click();
    await menu.getByText('Another name').waitFor();
    await menu.getByRole('button', { name: 'Delete First question' }).click();
    await expect.poll(() => menu.locator('.chats-open').count()).toBe(1);
    await menu.locator('input[type=file]').setInputFiles({
      name: 'wrong.json',
      mimeType: 'application/json',
      buffer: Buffer.from('{"conversations": []}'),
    });
    await menu.getByText('This file has no conversations that this page has exported.').waitFor();
    await menu.locator('input[type=file]').setInputFiles(file);
    await menu.getByText('1 conversation imported. 1 was here already').waitFor();
    await menu.getByText('First question').click();
    await expect.poll(() => page.locator('.turn').count()).toBe(2);
    await page.locator('.turn').getByText('And then?').waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it.each([
    ['bit by bit', HOSTILE.match(/[\s\S]{1,400}/g)!],
    ['all at once', [HOSTILE]],
  ])('makes no HTML of what a model writes, however it is written: %s', async (_, pieces) => {
    const toy = toyServer(() => slowly(pieces, 1), { model: MODEL });
    const { page, problems, close } = await open(toy);
    page.on('dialog', (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await ask(page, 'Attack');
    await page.getByText('Regenerate').waitFor();
    const found = await page.locator('.markdown').evaluate((root) => ({
      tags: [...new Set(Array.from(root.querySelectorAll('*'), ({ localName }) => localName))],
      attributes: Array.from(root.querySelectorAll('*'), (element) => element.getAttributeNames()).flat(),
      links: Array.from(root.querySelectorAll('a'), ({ href }) => href),
      text: root.textContent ?? '',
    }));
    const allowed = 'a blockquote br button code div p pre span table tbody td th thead tr'.split(' ');
    expect(found.tags.filter((tag) => !allowed.includes(tag))).toEqual([]);
    expect(
      found.attributes.filter((name) => name.startsWith('on') || name === 'style' || name === 'src'),
    ).toEqual([]);
    expect(found.links.length).toBeGreaterThan(1);
    for (const link of found.links) expect(link).toMatch(/^https:\/\/elsewhere\.example\//);
    // The markup that was written shows as text.
    for (const text of [
      '<img src=x onerror="alert(1)">',
      'javascript:alert(5)',
      '<b>code</b>',
      '<i>',
      '<u>',
    ]) {
      expect(found.text).toContain(text);
    }
    expect(found.text).toContain('</code></pre><script>alert(13)</script>');
    expect(problems).toEqual([]);
    await close();
  });

  it('stops by button and by Escape, and what has come stays', async () => {
    const toy = toyServer(() => slowly(Array<string>(400).fill('goose '), 10), { model: MODEL });
    const { page, problems, close } = await open(toy);
    for (const [index, stop] of [
      () => page.getByRole('button', { name: 'Stop', exact: true }).click(),
      () => page.keyboard.press('Escape'),
    ].entries()) {
      await ask(page, 'Go on');
      const answer = page.locator('.answer').nth(index);
      await answer.getByText('goose goose').waitFor();
      await stop();
      await answer.getByText('Stopped').waitFor();
      expect(await answer.locator('.markdown').textContent()).toMatch(/^goose goose/);
      await expect.poll(() => toy.engine.active).toBe(0);
      await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
    }
    expect(toy.engine.cancelled).toBe(2);
    expect(problems).toEqual([]);
    await close();
  });

  it('shows what the model recommends, and leaves it to the server', async () => {
    const sampling = { temperature: 0.6, topK: 20 };
    const toy = toyServer(() => say('drawn'), { model: { ...MODEL, sampling } });
    const { page, problems, close } = await open(toy);
    await page.getByRole('button', { name: 'Parameters' }).click();
    const temperature = page.getByLabel('Temperature');
    await expect.poll(() => temperature.getAttribute('placeholder')).toBe('0.6');
    expect(await temperature.inputValue()).toBe('');
    expect(await page.getByLabel('Top k').getAttribute('placeholder')).toBe('20');
    expect(await page.getByLabel('Top p').getAttribute('placeholder')).toBe('1');
    await ask(page, 'first');
    await page.locator('.markdown').getByText('drawn').waitFor();
    expect(toy.engine.requests[0]).toMatchObject(sampling);
    expect(problems).toEqual([]);
    await close();
  });

  it('answers again, and asks again with other words or parameters', async () => {
    const toy = toyServer((_, index) => say(`answer ${index}`), { model: MODEL });
    const { page, problems, close } = await open(toy);
    await ask(page, 'first');
    const said = page.locator('.markdown');
    await said.getByText('answer 0').waitFor();
    await page.getByRole('button', { name: 'Parameters' }).click();
    await page.getByLabel('Temperature').fill('0.3');
    await page.getByLabel('Top p').fill('0.8');
    await page.getByLabel('Max tokens').fill('40');
    await page.getByLabel('Seed').fill('11');
    await page.getByLabel('System prompt').fill('Be a goose.');
    await page.getByLabel('Stop at').fill('zzz');
    await page.getByText('More samplers').click();
    await page.getByLabel('XTC probability').fill('0.25');
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await said.getByText('answer 1').waitFor();
    await expect.poll(() => said.getByText('answer 0').count()).toBe(0);
    const again = toy.engine.requests[1]!;
    expect(again).toMatchObject({ temperature: 0.3, topP: 0.8, maxNewTokens: 40, xtcProbability: 0.25 });
    expect(Number(again.seed)).toBe(11);
    expect(asked(toy)[1]).toMatch(/Be a goose\.[\s\S]*first/);
    await page.locator('.question').hover();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Edit the message').fill('second');
    await page.keyboard.press('Enter');
    await said.getByText('answer 2').waitFor();
    await expect.poll(() => page.locator('.turn').count()).toBe(1);
    expect(asked(toy)[2]).not.toContain('first');
    // A field that is wrong asks nothing.
    await page.getByLabel('Temperature').fill('9');
    await ask(page, 'third');
    await expect.poll(() => page.locator('.turn').count()).toBe(1);
    expect(toy.engine.requests).toHaveLength(3);
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('third');
    expect(problems).toEqual([]);
    await close();
  });

  it('keeps what was there where an answer or a question is made again, and leads back to it', async () => {
    const toy = toyServer((_, index) => say(`answer ${index}`), { model: MODEL });
    const { page, problems, close } = await open(toy);
    const said = page.locator('.markdown');
    await ask(page, 'first');
    await said.getByText('answer 0').waitFor();
    await ask(page, 'second');
    await said.getByText('answer 1').waitFor();
    expect(await page.locator('.branches').count()).toBe(0);
    await page.getByRole('button', { name: 'Regenerate' }).first().click();
    await said.getByText('answer 2').waitFor();
    await expect.poll(() => page.locator('.turn').count()).toBe(1);
    await page.getByRole('group', { name: 'Version 2 of 2 of the answer' }).waitFor();
    await page.locator('.question').hover();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Edit the message').fill('changed');
    await page.keyboard.press('Enter');
    await said.getByText('answer 3').waitFor();
    const question = page.getByRole('group', { name: /of the question$/ });
    await question.getByText('2/2').waitFor();
    // By keyboard; the focus stays in the switch.
    await question.getByRole('button', { name: 'Earlier version of the question' }).focus();
    await page.keyboard.press('Enter');
    await said.getByText('answer 2').waitFor();
    await page.locator('.question-text').getByText('first').waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
    expect(await focused()).toBe('Later version of the question');
    await page.getByRole('button', { name: 'Earlier version of the answer' }).click();
    await said.getByText('answer 1').waitFor();
    expect(await page.locator('.turn').count()).toBe(2);
    await expect.poll(() => page.locator('.branches').count()).toBe(2);
    expect(await violations(page)).toEqual([]);
    // The branch that is shown is the one that is asked, kept and exported.
    await ask(page, 'third');
    await said.getByText('answer 4').waitFor();
    const all = asked(toy).at(-1)!;
    for (const text of ['first', 'answer 0', 'second', 'answer 1', 'third']) expect(all).toContain(text);
    for (const text of ['answer 2', 'changed', 'answer 3']) expect(all).not.toContain(text);
    await page.locator('.turn').nth(2).getByText('Regenerate').waitFor();
    await page.reload();
    await said.getByText('answer 4').waitFor();
    expect(await page.locator('.turn').count()).toBe(3);
    await page.getByRole('group', { name: 'Version 1 of 2 of the question' }).waitFor();
    const menu = page.locator('.chats');
    await menu.locator('summary').click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      menu.getByRole('button', { name: 'This chat as Markdown' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('first.md');
    const text = await readFile(await download.path(), 'utf8');
    expect(text).toBe(
      '# first\n\n## Question\n\nfirst\n\n## toy\n\nanswer 0\n\n## Question\n\nsecond\n\n## toy\n\nanswer 1\n\n## Question\n\nthird\n\n## toy\n\nanswer 4\n',
    );
    // A search finds what is in other branches, and opens them.
    await menu.getByLabel('Search conversations').fill('CHANGED');
    await menu.locator('.chats-open small').getByText('changed').waitFor();
    await menu.getByLabel('Search conversations').fill('nowhere');
    await menu.getByText('Nothing is found.').waitFor();
    await menu.getByLabel('Search conversations').fill('answer 3');
    await menu.locator('.chats-open').click();
    await said.getByText('answer 3').waitFor();
    expect(await page.locator('.turn').count()).toBe(1);
    expect(problems).toEqual([]);
    await close();
  });

  it('keeps presets, and the parameters of each model, over a reload', async () => {
    const toy = toyServer(() => say('x'), { model: MODEL });
    const { page, problems, close } = await open(toy);
    const parameters = page.getByRole('button', { name: 'Parameters' });
    await parameters.click();
    await page.getByLabel('Temperature').fill('0.3');
    await page.getByLabel('System prompt').fill('Be a goose.');
    await page.getByLabel('Name of the preset').fill('Goose');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved \u201cGoose\u201d.').waitFor();
    await page.getByLabel('System prompt').fill('Be a duck.');
    await page.getByLabel('Temperature').fill('0.4');
    await page.getByLabel('Temperature').blur();
    await page.reload();
    await page.getByText('Live').waitFor();
    await parameters.click();
    await expect.poll(() => page.getByLabel('System prompt').inputValue()).toBe('Be a duck.');
    expect(await page.getByLabel('Temperature').inputValue()).toBe('0.4');
    await page.getByLabel('Preset', { exact: true }).selectOption('Goose');
    expect(await page.getByLabel('System prompt').inputValue()).toBe('Be a goose.');
    expect(await page.getByLabel('Temperature').inputValue()).toBe('0.3');
    expect(await violations(page)).toEqual([]);
    await page.getByRole('group', { name: 'Presets' }).getByRole('button', { name: 'Delete' }).click();
    expect(await page.getByLabel('Preset', { exact: true }).locator('option').allTextContents()).toEqual([
      'No preset',
    ]);
    await ask(page, 'Hello');
    await page.getByText('Regenerate').waitFor();
    expect(toy.engine.requests[0]).toMatchObject({ temperature: 0.3 });
    expect(asked(toy)[0]).toContain('Be a goose.');
    expect(problems).toEqual([]);
    await close();
  });

  it('has the probabilities of tokens where they are asked for, by pointer and by keyboard', async () => {
    const steps = [...bytesOf('Geese')].map((token, index) => ({ tokens: [token], logProbs: [-index] }));
    const toy = toyServer(() => [...steps, { finish: 'stop' }], { model: MODEL });
    const { page, problems, close } = await open(toy);
    await ask(page, 'Who?');
    await page.getByText('Regenerate').waitFor();
    expect(await page.locator('.tokens').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Parameters' }).click();
    await page.getByRole('checkbox', { name: /^Probabilities of tokens/ }).check();
    await page.getByRole('button', { name: 'Regenerate' }).click();
    await page.getByText('Probabilities', { exact: true }).click();
    const tokens = page.locator('.tokens-list');
    await expect.poll(() => tokens.locator('span').allTextContents()).toEqual([...'Geese']);
    await tokens.locator('span').nth(1).hover();
    const said = page.locator('.tokens-said');
    await expect.poll(() => said.textContent()).toMatch(/^"e" 36\.8 %, log-prob -1\.00/);
    await tokens.focus();
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => said.textContent()).toMatch(/^"G" 100\.0 %/);
    expect(await violations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('says how long the model thought, also after a reload', async () => {
    const steps = slowly(['<think>One goose', ' flies.</think>', 'It flies.'], 60);
    const toy = toyServer(() => steps, {
      model: { ...MODEL, codec: templatedCodec(THINKING) },
    });
    const { page, problems, close } = await open(toy);
    await ask(page, 'Why?');
    await page.getByText('Regenerate').waitFor();
    const summary = page.locator('.reasoning summary');
    const words = await summary.textContent();
    expect(words).toMatch(/^Thought for \d+\.\d s$/);
    expect(await page.locator('.reasoning p').isVisible()).toBe(false);
    await page.reload();
    await expect.poll(() => summary.textContent()).toBe(words);
    await summary.click();
    await page.getByText('One goose flies.').waitFor();
    expect(await page.locator('.markdown').textContent()).toBe('It flies.');
    expect(problems).toEqual([]);
    await close();
  });

  it('keeps both where two tabs go on with one conversation', async () => {
    const toy = toyServer(() => say('honk'), { model: MODEL });
    const { page, problems, close } = await open(toy);
    await ask(page, 'Begun');
    await page.getByText('Regenerate').waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    const menus = { page: page.locator('.chats'), other: other.locator('.chats') };
    await menus.other.locator('summary').click();
    await menus.other.getByText('Begun').click();
    for (const [tab, question] of [
      [page, 'Here'],
      [other, 'There'],
      [page, 'Here again'],
    ] as const) {
      await ask(tab, question);
      const turn = tab.locator('.turn').filter({ hasText: question });
      await turn.last().getByText('Regenerate').waitFor();
    }
    await menus.page.locator('summary').click();
    await expect.poll(() => menus.page.locator('.chats-open').count()).toBe(2);
    // The latest comes first.
    for (const [index, last, turns] of [
      [0, 'Here again', 3],
      [1, 'There', 2],
    ] as const) {
      if (index > 0) await menus.page.locator('summary').click();
      await menus.page.locator('.chats-open').nth(index).click();
      await page.locator('.turn').last().getByText(last, { exact: true }).waitFor();
      expect(await page.locator('.turn').count()).toBe(turns);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it('tells how much of the context a conversation takes, also after a reload', async () => {
    const toy = toyServer(() => say('honk'), { model: { ...MODEL, maxSeqLen: 400 } });
    const { page, problems, close } = await open(toy);
    const meter = page.locator('.context-meter');
    expect(await meter.isVisible()).toBe(false);
    await ask(page, 'Hello');
    await meter.getByText(/^Context: \d+ of 400 tokens \(\d+ %\)$/).waitFor();
    const words = await meter.textContent();
    await page.reload();
    await expect.poll(() => meter.textContent()).toBe(words);
    await page.getByRole('button', { name: 'New chat' }).click();
    await expect.poll(() => meter.isVisible()).toBe(false);
    expect(problems).toEqual([]);
    await close();
  });

  it('can be alone on the page, by its address', async () => {
    const toy = toyServer(() => say('x'), { model: MODEL });
    const { page, problems, close } = await open(toy);
    const live = page.getByRole('region', { name: 'Formation' });
    await live.waitFor();
    await page.getByRole('button', { name: 'Chat only' }).click();
    await expect.poll(() => live.isVisible()).toBe(false);
    expect(new URL(page.url()).search).toBe('?view=chat');
    await page.reload();
    await page.getByText('Live').waitFor();
    expect(await live.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Chat only', pressed: true }).click();
    await live.waitFor();
    expect(new URL(page.url()).search).toBe('');
    expect(problems).toEqual([]);
    await close();
  });

  it('tells about the model', async () => {
    const toy = toyServer(() => say('x'), { model: MODEL });
    const { page, problems, close } = await open(toy);
    await page.getByText('About the model').click();
    await page.locator('.facts-list').getByText('65,536 tokens').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.facts-list').isVisible()).toBe(false);
    expect(problems).toEqual([]);
    await close();
  });

  it('says in one sentence, in its place, why there is no answer, and tries again', async () => {
    let script = (): Step[] => say('well');
    const toy = toyServer(() => script(), { model: MODEL, maxActive: 1 });
    const { page, problems, server, close } = await open(toy);
    const alert = page.getByRole('alert');
    // Another client has the only place.
    const other = new AbortController();
    script = () => slowly(Array<string>(1000).fill('x'), 20);
    const holding = toy.post('/v1/completions', { prompt: 'a' }, { signal: other.signal });
    await expect.poll(() => toy.engine.active).toBe(1);
    await ask(page, 'Hello');
    await expect.poll(() => alert.textContent()).toMatch(/full[^.]*try again in \d+ seconds?\.Try again$/);
    other.abort();
    await holding.catch(() => {});
    await expect.poll(() => toy.engine.active).toBe(0);
    script = () => [...slowly(['so far'], 5).slice(0, 2), { error: new Error('a broken wing') }];
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect
      .poll(() => alert.textContent())
      .toMatch(/^The server failed to handle this request\.|engine/);
    script = () => slowly(Array<string>(400).fill('goose '), 20);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.markdown').getByText('goose goose').waitFor();
    await server.close();
    await expect
      .poll(() => alert.textContent())
      .toContain('The connection was cut before the answer was whole.');
    expect(await page.locator('.answer .markdown').textContent()).toMatch(/^goose goose/);
    await page.getByText(/Trying again in \d+ s/).waitFor();
    expect(problems.filter((problem) => !problem.includes('net::ERR_'))).toEqual([]);
    await close();
  });

  it('says so while the server shuts down', async () => {
    const toy = toyServer(() => say('x'), { model: MODEL });
    const { page, close } = await open(toy);
    toy.state.drain(3000);
    await ask(page, 'Hello');
    await expect
      .poll(() => page.getByRole('alert').textContent())
      .toMatch(/shutting down and takes no new requests\. Try again in \d seconds?\./);
    await close();
  });
}
