import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';
import { shellSuite } from './shell.suite.js';
import { launchChromium } from './support/browser.js';

// All that is tested in a browser is one file, so that it is started once.
let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser?.close());

describe('the page', () => shellSuite(() => browser));
