// The pictures of the dashboard in the documents, taken of a real server with the model in the box:
//
//   npx tsx tools/screenshots/main.ts [--model MODEL] [--out docs/images]
//
// `npm run build` comes first. What stands in the chat is the same each time; the rest is what the machine does.
import { spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { Crowd } from '../bench/dashboard/crowd.js';
import { launchChromium } from '../chromium.js';
import { addressOf } from '../listening-server.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    model: { type: 'string', default: join(root, 'models/demo/gosling') },
    out: { type: 'string', default: join(root, 'docs/images') },
  },
});

/** Above it a picture is a burden for who clones. */
const MAX_BYTES = 200_000;

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
    name: 'dashboard-narrow',
    options: { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
    act: async (page, _, take) => {
      await ask(page, 'Tell me a story about a cat', '1');
      await take();
    },
  },
];

const child = spawn(
  process.execPath,
  [join(root, 'dist/bin/skein.js'), 'serve', '--model', values.model, '--port', '0'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const browser = await launchChromium();
try {
  const url = await addressOf(child);
  mkdirSync(values.out, { recursive: true });
  for (const shot of SHOTS) await take(browser, url, shot);
} finally {
  await browser.close();
  child.kill('SIGTERM');
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
  const { size } = statSync(path);
  console.log(`${path}: ${size} bytes`);
  if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes, which is more than ${MAX_BYTES}.`);
  await context.close();
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
