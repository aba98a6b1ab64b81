import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { golden } from '../../../support/hostile-pictures.js';
import { writeSeeingModel } from '../../../support/seeing-model.js';
import { seeingToy } from '../../support/fake-sight.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
import { listen, say, toyServer } from '../../support/toy-server.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';
import { pdfOf } from './support/pdf-of.js';

interface Sent {
  role: string;
  content: string | { type: string; text?: string; image_url?: { url: string } }[];
}

interface Given {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

const file = (name: string, content: Buffer | string, mimeType = ''): Given => ({
  ...{ name, mimeType },
  buffer: Buffer.from(content),
});
const PICTURE = golden('png rgb');
const URL_OF_PICTURE = `data:image/png;base64,${PICTURE.toString('base64')}`;
/** Both kinds of names: the bytes of a file show what it is. */
const goose = file('goose.png', PICTURE, 'image/png');
const mislabelled = file('webp.jpg', golden('webp lossless'), 'image/jpeg');

/** Attaches files by the browser's choice. */
async function choose(page: Page, ...files: Given[]): Promise<void> {
  await page.locator('.composer input[type=file]').setInputFiles(files);
  await expect.poll(() => page.locator('.tray-item progress').count()).toBe(0);
}

/** Gives files to the page as a paste or a drop does. */
async function give(
  page: Page,
  how: 'paste' | 'drop',
  { name, mimeType, buffer }: Given,
  formatted = '',
): Promise<void> {
  const bytes = [...buffer];
  await page.evaluate(
    ({ how, name, mimeType, bytes, formatted }) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(bytes)], name, { type: mimeType }));
      data.setData('text/plain', name);
      if (formatted !== '') data.setData('text/html', formatted);
      const always = { bubbles: true, cancelable: true };
      const event =
        how === 'paste'
          ? new ClipboardEvent('paste', { ...always, clipboardData: data })
          : new DragEvent('drop', { ...always, dataTransfer: data });
      document.querySelector(how === 'paste' ? '#prompt' : '.header')!.dispatchEvent(event);
    },
    { how, name, mimeType, bytes, formatted },
  );
}

const message = (page: Page) => page.getByLabel('Message', { exact: true });
const names = (page: Page) => page.locator('.tray-item .attachment-name').allTextContents();
const refusal = (page: Page) => page.locator('.tray-problem').textContent();

async function ask(page: Page, text: string): Promise<Sent[]> {
  const asked = page.waitForRequest((request) => request.url().endsWith('/v1/chat/completions'));
  await message(page).fill(text);
  await page.keyboard.press('Enter');
  return sentBy(await asked);
}

const sentBy = (request: { postDataJSON(): unknown }) =>
  (request.postDataJSON() as { messages: Sent[] }).messages;

/** Files that go with a question: pictures that a model sees, and texts of files. */
export function attachmentsSuite(browser: () => Browser): void {
  let model: SkeinProcess;
  const model0 = { maxInputLen: 6000, maxSeqLen: 8192, defaultMaxTokens: 100 };
  const toys = [
    toyServer(() => say('Seen.'), { model: { ...model0, ...seeingToy().fields } }),
    toyServer(() => say('Read.'), { model: model0 }),
  ];
  let servers: { url: string; close: () => Promise<void> }[] = [];
  beforeAll(async () => {
    const folder = writeSeeingModel(temporaryFolder('skein-page-seeing'));
    model = await startServer(['--model', folder, '--tokens-per-block', '16', '--threads', '1']);
    servers = await Promise.all(toys.map((toy) => listen(toy)));
  });
  afterAll(async () => {
    await Promise.all([model?.stop(), ...servers.map((server) => server.close())]);
  });

  async function open(url: string, options: Parameters<typeof visit>[2] = {}) {
    const visited = await visit(browser(), url, options);
    await visited.page.getByText('Live', { exact: true }).waitFor();
    return visited;
  }
  const seeing = (options?: Parameters<typeof visit>[2]) => open(servers[0]!.url, options);

  it('are seen by a model, kept over a reload, sent again, exported and imported', async () => {
    const { page, problems, close } = await open(model.url);
    await page.getByRole('button', { name: 'Parameters' }).click();
    await page.getByLabel('Max tokens').fill('4');
    await choose(page, goose, mislabelled);
    expect(await names(page)).toEqual(['goose.png', 'webp.jpg']);
    expect(await page.locator('.tray-item small').first().textContent()).toMatch(/^\d+ bytes$|kB$/);
    const [first] = await ask(page, 'what is this?');
    expect(first!.content).toEqual([
      { type: 'image_url', image_url: { url: URL_OF_PICTURE } },
      { type: 'image_url', image_url: { url: expect.stringMatching(/^data:image\/webp;base64,/) } },
      { type: 'text', text: 'what is this?' },
    ]);
    await page.getByText('Regenerate').waitFor();
    expect(await names(page)).toEqual([]);
    await page.reload();
    await page.getByText('Regenerate').waitFor();
    const shown = page.locator('.attachment-picture img');
    const widths = () => shown.evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth));
    await expect.poll(async () => Math.min(...(await widths()))).toBeGreaterThan(0);
    await page.getByRole('button', { name: 'Parameters' }).click();
    await page.getByLabel('Max tokens').fill('4');
    const later = await ask(page, 'and more?');
    expect(later[0]).toEqual(first);
    expect(later.at(-1)!.content).toBe('and more?');
    await page.getByText('Regenerate').nth(1).waitFor();
    // Again, and with other words: the pictures stay.
    for (const change of [
      () => page.getByRole('button', { name: 'Regenerate' }).first().click(),
      async () => {
        await page.locator('.question').first().hover();
        await page.getByRole('button', { name: 'Edit' }).first().click();
        await page.getByLabel('Edit the message').fill('');
        await page.keyboard.press('Enter');
      },
    ]) {
      const asked = page.waitForRequest((request) => request.url().endsWith('/v1/chat/completions'));
      await change();
      const [only] = sentBy(await asked);
      expect(only!.content.slice(0, 2)).toEqual(first!.content.slice(0, 2));
      await page.getByText('Regenerate').waitFor();
    }
    await exportAndImport(page);
    await expect.poll(() => shown.count()).toBe(2);
    await expect.poll(async () => Math.min(...(await widths()))).toBeGreaterThan(0);
    expect(problems).toEqual([]);
    await close();
  });

  /** The conversation goes to a file, out of the browser, and back. */
  async function exportAndImport(page: Page): Promise<void> {
    const menu = page.locator('.chats');
    await menu.locator('summary').click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      menu.getByRole('button', { name: 'Export all' }).click(),
    ]);
    const path = await download.path();
    const { conversations } = JSON.parse(await readFile(path, 'utf8'));
    expect(conversations).toHaveLength(1);
    // Its question has no words any more.
    expect(conversations[0].title).toBe('goose.png');
    const { messages, leaf } = conversations[0];
    const question = messages.find(({ id }: { id: string }) => id === messages.at(-1).parent);
    expect([question.text, leaf]).toEqual(['', messages.at(-1).id]);
    expect(question.attachments[0]).toMatchObject({
      ...{ kind: 'picture', name: 'goose.png', type: 'image/png', bytes: PICTURE.length },
      content: PICTURE.toString('base64'),
    });
    await menu.getByRole('button', { name: /^Delete/ }).click();
    await expect.poll(() => page.locator('.turn').count()).toBe(0);
    await menu.locator('input[type=file]').setInputFiles(path);
    await menu.getByText('1 conversation imported.').waitFor();
    await menu.locator('.chats-open').click();
  }

  it('are pasted, dropped, opened in full and taken out, by keyboard too', async () => {
    const { page, problems, close } = await seeing();
    await give(page, 'paste', goose);
    await expect.poll(() => names(page)).toEqual(['goose.png']);
    await give(page, 'drop', mislabelled);
    await expect.poll(() => names(page)).toEqual(['goose.png', 'webp.jpg']);
    // A table of an office program comes with a picture of itself.
    await give(page, 'paste', goose, '<table><tr><td>a</td></tr></table>');
    await choose(page, file('notes.md', '# Notes\r\n\r\n```\ncode\n```\n', 'text/markdown'));
    await expect.poll(() => names(page)).toEqual(['goose.png', 'webp.jpg', 'notes.md']);
    await page.getByText('notes.md attached, 22 tokens').waitFor({ state: 'attached' });
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Delete');
    expect(await names(page)).toEqual(['goose.png', 'notes.md']);
    expect(await page.evaluate(() => document.activeElement!.getAttribute('aria-label'))).toBe(
      'Remove notes.md',
    );
    await page.getByRole('button', { name: 'Remove goose.png' }).click();
    await choose(page, goose);
    const [asked] = await ask(page, 'Which?');
    expect(asked!.content).toEqual([
      { type: 'image_url', image_url: { url: URL_OF_PICTURE } },
      { type: 'text', text: 'File: notes.md\n````\n# Notes\n\n```\ncode\n```\n\n````\n\nWhich?' },
    ]);
    await page.getByText('Regenerate').waitFor();
    await page.getByRole('button', { name: /^Open goose\.png, / }).press('Enter');
    const viewer = page.getByRole('dialog', { name: 'goose.png' });
    await viewer.getByRole('img', { name: 'goose.png' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => viewer.isVisible()).toBe(false);
    await page.getByRole('button', { name: /^notes\.md/ }).click();
    expect(await page.getByRole('dialog', { name: 'notes.md' }).locator('pre').textContent()).toContain(
      '# Notes',
    );
    expect(problems).toEqual([]);
    await close();
  });

  it('are the texts of PDF files, read by a worker that is asked for with the first of them', async () => {
    const { page, problems, close } = await seeing();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await choose(page, file('a.txt', 'plain'));
    expect(asked).not.toContain('/dashboard/pdf-worker.js');
    await choose(page, file('two.pdf', pdfOf(['One goose.', 'Two geese.']), 'application/pdf'));
    expect(asked).toContain('/dashboard/pdf-worker.js');
    expect(await page.locator('.tray-item small').nth(1).textContent()).toBe('22 tokens');
    const [sent] = await ask(page, '');
    expect(sent!.content).toBe(
      'File: a.txt\n```\nplain\n```\n\nFile: two.pdf\n```\nOne goose.\n\nTwo geese.\n```',
    );
    await page.getByText('Regenerate').waitFor();
    const long = pdfOf(Array.from({ length: 501 }, (_, index) => `Page ${index + 1}.`));
    await choose(page, file('long.pdf', long));
    expect(await page.locator('.tray-item small').textContent()).toMatch(/ tokens, pages 1 to 500 of 501$/);
    await expect.poll(() => page.workers().length).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it('are waited for, until the reader takes them out or their time is over', async () => {
    const { page, problems, close } = await seeing();
    // The worker never comes.
    let asked = 0;
    await page.route('**/dashboard/pdf-worker.js', () => {
      asked += 1;
    });
    const input = page.locator('.composer input[type=file]');
    const slow = file('slow.pdf', pdfOf(['x']));
    const reading = page.getByRole('progressbar', { name: 'Reading slow.pdf' });
    await input.setInputFiles([slow]);
    await reading.waitFor();
    await expect.poll(() => asked).toBe(1);
    await message(page).fill('And?');
    await page.keyboard.press('Enter');
    expect(await refusal(page)).toBe('“slow.pdf” is still being read.');
    await page.getByRole('button', { name: 'Remove slow.pdf' }).click();
    expect([await names(page), await refusal(page)]).toEqual([[], '']);
    await page.clock.install();
    await input.setInputFiles([slow]);
    await reading.waitFor();
    await expect.poll(() => asked).toBe(2);
    await page.clock.fastForward(61_000);
    await expect.poll(() => refusal(page)).toBe('“slow.pdf” takes more than 60 seconds to read.');
    expect(await names(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('are refused with a sentence before anything is sent', async () => {
    const { page, problems, close } = await seeing();
    const wide = Buffer.from(PICTURE);
    wide.writeUInt32BE(20_000, 16);
    const damaged = Buffer.concat([PICTURE.subarray(0, 60), Buffer.alloc(40)]);
    const large = (bytes: number) => Buffer.concat([PICTURE, Buffer.alloc(bytes - PICTURE.length)]);
    for (const [given, sentence] of [
      [
        file('long.txt', 'x'.repeat(8192)),
        /^“long\.txt” has 8,192 tokens, and the model's context has 8,192\.$/,
      ],
      [file('empty.txt', ''), /^“empty\.txt” is empty\.$/],
      [
        file('a.zip', 'PK\x03\x04\0\0'),
        /^“a\.zip” cannot be attached: it is no picture \(JPEG, PNG, WebP, GIF\)/,
      ],
      [
        file('wide.png', wide),
        /^“wide\.png”: The PNG picture has 20000 x \d+ pixels, and a side may have 16384\.$/,
      ],
      [
        file('damaged.png', damaged),
        /^“damaged\.png” is damaged: this browser cannot show it\.$|cannot be decoded/,
      ],
      [
        file('large.png', large(12e6 + 1)),
        /^“large\.png” has 12 MB, and a file of its kind may have 12 MB\.$/,
      ],
      [
        file('locked.pdf', pdfOf(['x'], true)),
        /^“locked\.pdf” is encrypted: save it without a password first\.$/,
      ],
      [file('broken.pdf', '%PDF-1.7\nnothing'), /^“broken\.pdf” is damaged: it cannot be read as a PDF\.$/],
      [file('scan.pdf', pdfOf([''])), /^“scan\.pdf” has no text: it may be a scan/],
    ] as const) {
      await choose(page, given);
      await expect.poll(() => refusal(page)).toMatch(sentence);
      expect(await names(page)).toEqual([]);
    }
    await choose(page, file('one.png', large(7e6)), file('two.png', large(7e6)));
    expect(await names(page)).toEqual(['one.png']);
    expect(await refusal(page)).toContain('may have 12 MB together, and with this they would have 14 MB.');
    await choose(page, ...Array.from({ length: 17 }, (_, index) => file(`${index}.txt`, 'x')));
    expect(await names(page)).toHaveLength(16);
    expect(await refusal(page)).toBe('A question may have 16 files.');
    expect(toys[0]!.engine.requests.filter(({ promptTokens }) => promptTokens.length > 5000)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it('are no pictures where the model does not see, in a conversation that had some too', async () => {
    const { page, problems, close } = await open(servers[1]!.url);
    await choose(page, goose, file('a.txt', 'plain'));
    expect(await names(page)).toEqual(['a.txt']);
    expect(await refusal(page)).toBe('“goose.png” is a picture: the model “toy” does not see pictures.');
    const attachment = { kind: 'picture', id: 'p', name: 'goose.png', bytes: PICTURE.length };
    const content = PICTURE.toString('base64');
    const picture = { ...attachment, type: 'image/png', width: 3, height: 3, content };
    const turns = [{ question: 'This?', answer: 'A goose.', reasoning: '', attachments: [picture] }];
    const kept = { id: 'c', title: 'Geese', model: 'other', changedMs: 1, turns };
    const exported = JSON.stringify({ format: 'skein-conversations', version: 1, conversations: [kept] });
    const menu = page.locator('.chats');
    await menu.locator('summary').click();
    await menu.locator('input[type=file]').setInputFiles(file('all.json', exported, 'application/json'));
    await menu.getByText('Geese').click();
    await page
      .getByRole('status')
      .getByText('The pictures of this conversation are not sent: the model “toy” does not see pictures.')
      .waitFor();
    expect((await ask(page, 'And now?')).map(({ content }) => content)).toEqual([
      'This?',
      'A goose.',
      'File: a.txt\n```\nplain\n```\n\nAnd now?',
    ]);
    await page.getByText('Regenerate').nth(1).waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it('are not kept where the browser has no room, which is said, and the texts are', async () => {
    const { page, problems, close } = await seeing();
    const devtools = await page.context().newCDPSession(page);
    const quotaSize = 300_000;
    await devtools.send('Storage.overrideQuotaForOrigin', { origin: servers[0]!.url, quotaSize });
    await choose(page, file('heavy.png', Buffer.concat([PICTURE, Buffer.alloc(1e6)])));
    await ask(page, 'Heavy?');
    await page
      .getByText('This browser has no room left for this conversation: its files are not kept.')
      .waitFor();
    await page.reload();
    await page.locator('.attachment-gone').getByText('not kept in this browser').waitFor();
    expect((await ask(page, 'And?')).map(({ content }) => content)).toEqual(['Heavy?', 'Seen.', 'And?']);
    expect(problems).toEqual([]);
    await close();
  });

  it('are kept in a browser that has conversations of a page without files', async () => {
    const { page, problems, close } = await seeing();
    await page.goto(`${servers[0]!.url}/health`);
    await page.evaluate(async () => {
      const done = (request: IDBRequest | IDBTransaction) =>
        new Promise((resolve) => {
          for (const event of ['success', 'complete']) request.addEventListener(event, resolve);
        });
      await done(indexedDB.deleteDatabase('skein-chat'));
      const request = indexedDB.open('skein-chat', 1);
      request.onupgradeneeded = () => request.result.createObjectStore('conversations', { keyPath: 'id' });
      await done(request);
      const transaction = request.result.transaction('conversations', 'readwrite');
      const turns = [{ question: 'Old?', answer: 'Yes.', reasoning: '' }];
      transaction
        .objectStore('conversations')
        .put({ id: 'o', title: 'Old', model: 'toy', changedMs: 1, turns });
      await done(transaction);
      request.result.close();
    });
    await page.goto(servers[0]!.url);
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator('.chats summary').click();
    await page.locator('.chats').getByText('Old').click();
    await choose(page, goose);
    await ask(page, 'And this?');
    await page.getByText('Regenerate').nth(1).waitFor();
    await page.reload();
    await expect.poll(() => page.locator('.attachment-picture img').count()).toBe(1);
    expect(problems).toEqual([]);
    await close();
  });

  it('leave nothing to complain of, in light and dark and on a narrow screen', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, problems, close } = await seeing({ colorScheme, viewport: { width: 360, height: 740 } });
      const name = `${'a-very-long-name-'.repeat(12)}.png`;
      await choose(page, { ...goose, name }, file('a.txt', 'plain'), file('x.bin', '\0'));
      await expect.poll(() => refusal(page)).toMatch(/^“x\.bin”/);
      expect(await violations(page)).toEqual([]);
      await ask(page, 'What?');
      await page.getByText('Regenerate').waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
      expect(problems).toEqual([]);
      await close();
    }
  });

  it('need no more of the page’s policy than pictures from memory and the worker', async () => {
    const { page, problems, close } = await seeing();
    const refused = await page.evaluate(async () => {
      const { trustedTypes } = globalThis as unknown as {
        trustedTypes: { createPolicy(name: string, rules: object): unknown };
      };
      const fails = (what: () => unknown) => {
        try {
          what();
          return false;
        } catch {
          return true;
        }
      };
      const image = (src: string) =>
        new Promise<boolean>((resolve) => {
          const element = Object.assign(new Image(), { src });
          element.onload = () => resolve(false);
          element.onerror = () => resolve(true);
        });
      return {
        worker: fails(() => new Worker('dashboard/pdf-worker.js')),
        samePolicy: fails(() => trustedTypes.createPolicy('skein-pdf-worker', {})),
        otherPolicy: fails(() => trustedTypes.createPolicy('other', {})),
        dataPicture: await image(
          'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==',
        ),
        foreignPicture: await image('https://elsewhere.example/a.png'),
      };
    });
    expect(refused).toEqual({
      ...{ worker: true, samePolicy: true, otherPolicy: true },
      ...{ dataPicture: true, foreignPicture: true },
    });
    expect(problems).toContain('policy: img-src https://elsewhere.example/a.png ');
    await close();
  });
}
