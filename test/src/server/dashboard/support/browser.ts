import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

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
  // A bound for hangs, not for speed: a browser takes its time on a busy machine.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const problems: string[] = [];
  const { origin } = new URL(url);
  page.on('console', (message) => {
    // A refusal that the page shows by itself is reported by the browser too.
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
