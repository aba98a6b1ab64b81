import type { Browser } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { McpServers } from '../../../../src/server/mcp/mcp-servers.js';
import { mcpServer } from '../../support/mcp-server.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { listen, say, toyServer } from '../../support/toy-server.js';
import { violations } from './support/axe.js';
import { visit } from './support/browser.js';

const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const ADD = '<tool_call>\n{"name": "calc__add", "arguments": {"a": 2, "b": 3}}\n</tool_call>';
const LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Tools of the operator's servers, which run when the reader lets them. */
export function toolsSuite(browser: () => Browser): void {
  const closing: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));

  async function opened(answers: string[]) {
    const mcp = await mcpServer();
    const toy = toyServer((_, index) => say(answers[Math.min(index, answers.length - 1)]!), {
      model: {
        codec: templatedCodec(HERMES),
        maxInputLen: 40_000,
        maxSeqLen: 50_000,
        defaultMaxTokens: 4000,
      },
      toolServers: new McpServers(new Map([['calc', mcp.url]]), 5000, LOG),
    });
    const server = await listen(toy);
    const { page, problems, close } = await visit(browser(), server.url);
    closing.push(close, server.close, () => mcp.close());
    await page.getByText('toy', { exact: true }).waitFor();
    await page.getByText('Tools', { exact: true }).click();
    await page.getByRole('checkbox', { name: 'calc' }).check();
    await page.keyboard.press('Escape');
    await page.getByLabel('Message', { exact: true }).fill('What is 2 + 3?');
    await page.keyboard.press('Enter');
    return { page, problems, mcp, toy };
  }

  it('run once they are approved, by keyboard too, and are kept with the answer', async () => {
    const { page, problems, mcp, toy } = await opened([`Let me see.${ADD}`, 'It is 5.', 'As I said.']);
    const call = page.locator('.call');
    const approve = call.getByRole('button', { name: 'Approve add of calc' });
    await approve.waitFor();
    expect(await call.locator('.call-state').textContent()).toBe('asks to run');
    expect(await call.locator('pre').first().textContent()).toBe('{"a": 2, "b": 3}');
    await page
      .getByRole('log')
      .getByText('The model asks to call add of calc.')
      .waitFor({ state: 'attached' });
    expect(await violations(page)).toEqual([]);
    expect(mcp.calls).toEqual([]);
    await approve.focus();
    await page.keyboard.press('Enter');
    await page.getByText('Regenerate').waitFor();
    expect(mcp.calls).toEqual([{ name: 'add', args: { a: 2, b: 3 } }]);
    expect(await call.locator('.call-state').textContent()).toBe('done');
    expect(await page.locator('.markdown p').allTextContents()).toEqual(['Let me see.', 'It is 5.']);
    await page.reload();
    await call.getByText('done').waitFor();
    await call.getByText('Result').click();
    expect(await call.locator('pre').last().textContent()).toBe('5');
    // Without tools the next question is a chat again.
    await page.getByLabel('Message', { exact: true }).fill('Sure?');
    await page.keyboard.press('Enter');
    await page.locator('.markdown').getByText('As I said.').waitFor();
    expect(toy.engine.requests).toHaveLength(3);
    expect(problems).toEqual([]);
  });

  it('do not run where they are denied, or the answer is stopped', async () => {
    const { page, problems, mcp } = await opened([ADD, 'Then not.', ADD]);
    const call = page.locator('.call');
    await call.getByRole('button', { name: 'Deny add of calc' }).click();
    await page.locator('.markdown').getByText('Then not.').waitFor();
    expect(await call.locator('.call-state').textContent()).toBe('denied');
    await page.getByText('Regenerate').click();
    await call.getByRole('button', { name: 'Approve add of calc' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('Stopped').waitFor();
    expect(await call.locator('.call-state').textContent()).toBe('not run');
    expect(await call.getByRole('button').count()).toBe(0);
    await page.getByRole('group', { name: 'Version 2 of 2 of the answer' }).waitFor();
    expect(mcp.calls).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('are not offered where the operator has named none', async () => {
    const server = await listen(toyServer(() => say('x')));
    const { page, problems, close } = await visit(browser(), server.url);
    closing.push(close, server.close);
    await page.getByText('Live').waitFor();
    expect(await page.locator('.tools').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it('are listed by the server', async () => {
    const toy = toyServer(() => say('x'), {
      toolServers: new McpServers(new Map([['calc', 'http://127.0.0.1:1/mcp']]), 5000, LOG),
    });
    expect(await (await toy.get('/v1/mcp_servers')).json()).toEqual({
      object: 'list',
      data: [{ object: 'mcp_server', server_label: 'calc' }],
    });
    expect(await (await toyServer(() => say('x')).get('/v1/mcp_servers')).json()).toEqual({
      object: 'list',
      data: [],
    });
  });
}
