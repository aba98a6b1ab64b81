import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Paths of Chromium in common distributions. */
const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome-stable',
  '/usr/bin/google-chrome',
];

/** @throws where there is no browser: the dashboard is not tested without one. */
function chromiumPath(): string {
  const named = process.env.SKEIN_TEST_CHROMIUM;
  const found = named ?? USUAL_PATHS.find(existsSync);
  if (found !== undefined && existsSync(found)) return found;
  const tried = named === undefined ? USUAL_PATHS.join(', ') : `SKEIN_TEST_CHROMIUM=${named}`;
  throw new Error(
    `The dashboard needs Chromium here, and there is none (${tried}): apt-get install chromium, or name one by SKEIN_TEST_CHROMIUM.`,
  );
}

/** @param more command line arguments. */
export function launchChromium(more: readonly string[] = []): Promise<Browser> {
  // The user of a container often is root, which Chromium's sandbox does not take.
  const args = process.getuid?.() === 0 ? ['--no-sandbox', ...more] : [...more];
  return chromium.launch({ executablePath: chromiumPath(), args });
}
