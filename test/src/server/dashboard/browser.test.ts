import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe } from 'vitest';
import { launchChromium } from '../../../../tools/chromium.js';
import { accessSuite } from './access.suite.js';
import { adaptersSuite } from './adapters.suite.js';
import { attachmentsSuite } from './attachments.suite.js';
import { catalogueSuite } from './catalogue.suite.js';
import { chatSuite } from './chat.suite.js';
import { formationSuite } from './formation.suite.js';
import { formulasSuite } from './formulas.suite.js';
import { modelsSuite } from './models.suite.js';
import { otherPagesSuite, PAGES_OF_ELSEWHERE } from './other-pages.suite.js';
import { shellSuite } from './shell.suite.js';
import { toolsSuite } from './tools.suite.js';

// All that is tested in a browser is one file, so that it is started once.
let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium(PAGES_OF_ELSEWHERE);
});
afterAll(() => browser?.close());

describe('the page', () => shellSuite(() => browser));
describe('the chat', () => chatSuite(() => browser));
describe('formulas and code', () => formulasSuite(() => browser));
describe('attachments', () => attachmentsSuite(() => browser));
describe('tools', () => toolsSuite(() => browser));
describe('access', () => accessSuite(() => browser));
describe('the formation', () => formationSuite(() => browser));
describe('the models', () => modelsSuite(() => browser));
describe('models to download', () => catalogueSuite(() => browser));
describe('LoRA adapters', () => adaptersSuite(() => browser));
describe('pages of elsewhere', () => otherPagesSuite(() => browser));
