import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Where distributions put it. */
const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
];

/** @throws where there is no browser: the dashboard is not tested without one. */
export function chromiumPath(): string {
  const named = process.env.SKEIN_TEST_CHROMIUM;
  const found = named ?? USUAL_PATHS.find(existsSync);
  if (found !== undefined && existsSync(found)) return found;
  const tried = named === undefined ? USUAL_PATHS.join(', ') : `SKEIN_TEST_CHROMIUM=${named}`;
  throw new Error(
    `The dashboard's tests need Chromium, and there is none (${tried}): apt-get install chromium, or name one by SKEIN_TEST_CHROMIUM.`,
  );
}

export function launchChromium(): Promise<Browser> {
  // In containers the tests often are root, which Chromium's sandbox does not take.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: chromiumPath(), args });
}

export interface Visit {
  page: Page;
  /** Errors of the console and of scripts, refusals of the content security policy, and requests to other servers. */
  problems: string[];
  close(): Promise<void>;
}

/** A page in a profile of its own, with everything noted that should not be. */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  const problems: string[] = [];
  const { origin } = new URL(url);
  page.on('console', (message) => {
    // A refusal that the page shows by itself is told by the browser too.
    const isRefusal = /^Failed to load resource: the server responded with a status of (4|503)/.test(
      message.text(),
    );
    if (message.type() === 'error' && !isRefusal) problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`script: ${error.message}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`request: ${request.url()}`);
  });
  await page.exposeFunction('noteViolation', (text: string) => problems.push(`policy: ${text}`));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const { noteViolation } = globalThis as unknown as { noteViolation(text: string): void };
      noteViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}
