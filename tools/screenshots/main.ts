// The pictures of the dashboard in the documents and a short recording, taken of a real server with the model in the box:
//
//   npx tsx tools/screenshots/main.ts [--model MODEL] [--sees MODEL] [--out docs/images]
//
// `npm run build` comes first. What stands in the chat is the same each time; the rest is what the machine does. The picture of a question with a
// picture needs a model that sees, of which there is none in the box: without --sees it stays as it is.
import { spawn } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { Crowd } from '../bench/dashboard/crowd.js';
import { launchChromium } from '../chromium.js';
import { addressOf } from '../listening-server.js';
import { Recording } from './recording.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    model: { type: 'string', default: join(root, 'models/demo/gosling') },
    sees: { type: 'string' },
    out: { type: 'string', default: join(root, 'docs/images') },
  },
});

/** Above it a picture is a burden for who clones. */
const MAX_BYTES = 200_000;
const MAX_FILM_BYTES = 2_000_000;

interface Shot {
  name: string;
  options: BrowserContextOptions;
  /** Takes the picture when there is something to see: of the page, or of a part of it. */
  act: (page: Page, url: string, take: (selector?: string) => Promise<void>) => Promise<void>;
}

const WIDE = { viewport: { width: 1440, height: 900 } };
const SHOTS: readonly Shot[] = [
  { name: 'dashboard-light', options: { ...WIDE, colorScheme: 'light' }, act: atWork },
  { name: 'dashboard-dark', options: { ...WIDE, colorScheme: 'dark' }, act: atWork },
  {
    name: 'dashboard-schemes',
    options: { ...WIDE, colorScheme: 'light' },
    act: async (page, _url, take) => {
      await page.locator('#schemes').scrollIntoViewIfNeeded();
      await page.waitForTimeout(500);
      await take('#schemes');
    },
  },
  {
    name: 'dashboard-chat',
    options: { ...WIDE, colorScheme: 'light' },
    act: async (page, _, take) => {
      await page.getByRole('button', { name: 'Chat only' }).click();
      await ask(page, 'Tell me a story about a goose', '2');
      await page.getByText('About the model').click();
      await page.locator('.facts-list').getByText('Parameters').waitFor();
      await take();
    },
  },
  {
    name: 'dashboard-narrow',
    options: { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
    act: async (page, _, take) => {
      await ask(page, 'Tell me a story about a cat', '1');
      await take();
    },
  },
];

const SEEING: Shot = {
  name: 'dashboard-picture',
  options: { ...WIDE, colorScheme: 'light' },
  act: async (page, _, take) => {
    await page.getByRole('button', { name: 'Chat only' }).click();
    const files = ['dashboard-light.png', 'dashboard-chat.png'].map((name) =>
      join(root, 'docs/images', name),
    );
    await page.locator('.composer input[type=file]').setInputFiles(files);
    await page.getByLabel('Message', { exact: true }).fill('What differs in these two?');
    await page.waitForFunction(() => document.querySelectorAll('.tray-item img').length === 2);
    await page.waitForFunction(() => document.querySelector('.tray-item progress') === null);
    await take('.composer');
  },
};

const browser = await launchChromium();
try {
  mkdirSync(values.out, { recursive: true });
  await withServer(values.model, async (url) => {
    for (const shot of SHOTS) await take(browser, url, shot);
    await record(browser, url);
  });
  const { sees } = values;
  if (sees !== undefined) await withServer(sees, (url) => take(browser, url, SEEING));
} finally {
  await browser.close();
}

async function withServer(model: string, use: (url: string) => Promise<void>): Promise<void> {
  const args = [join(root, 'dist/bin/skein.js'), 'serve', '--model', model, '--port', '0'];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await use(await addressOf(child));
  } finally {
    child.kill('SIGTERM');
  }
}

async function take(browser: Browser, url: string, { name, options, act }: Shot): Promise<void> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(url);
  await page.getByText('Live').waitFor();
  const path = join(values.out, `${name}.png`);
  await act(page, url, async (selector) => {
    const options = { path, animations: 'disabled' } as const;
    await (selector === undefined ? page.screenshot(options) : page.locator(selector).screenshot(options));
  });
  checkSize(path, MAX_BYTES);
  await context.close();
}

/** A question, its answer, and many more at once. */
async function record(browser: Browser, url: string): Promise<void> {
  const size = { width: 1280, height: 720 };
  const context = await browser.newContext({ viewport: size, colorScheme: 'dark' });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByText('Live').waitFor();
  const recording = await Recording.start(page);
  await ask(page, 'Tell me a story about a goose', '2');
  await page
    .getByRole('button', { name: /^Send \d+ prompts$/ })
    .first()
    .click();
  await page.waitForTimeout(6000);
  const path = join(values.out, 'dashboard.webm');
  writeFileSync(path, await recording.film(browser, size));
  checkSize(path, MAX_FILM_BYTES);
  await context.close();
}

function checkSize(path: string, most: number): void {
  const { size } = statSync(path);
  console.log(`${path}: ${size} bytes`);
  if (size === 0 || size > most)
    throw new Error(`${path} has ${size} bytes; from 1 to ${most} are expected.`);
}

/** Chats of others come and go. */
async function atWork(page: Page, url: string, take: () => Promise<void>): Promise<void> {
  const lengths = [90, 230, 40, 160, 300, 60, 130, 200, 30, 260];
  let next = 0;
  const crowd = new Crowd(url, 24, () => lengths[next++ % lengths.length]!);
  await ask(page, 'Tell me a story about a cat', '1');
  await page.waitForTimeout(9000);
  await take();
  crowd.leave();
}

async function ask(page: Page, question: string, seed: string): Promise<void> {
  await page.getByRole('button', { name: 'Parameters' }).click();
  await page.getByLabel('Seed').fill(seed);
  await page.getByRole('button', { name: 'Parameters' }).click();
  await page.getByLabel('Message', { exact: true }).fill(question);
  await page.keyboard.press('Enter');
  await page.getByText('Regenerate').waitFor();
  // Nothing is pointed at.
  await page.mouse.move(0, 0);
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
}
