import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AgentsLoad, agentsRates, functionsOf, historyOf } from '../../../tools/compare/agents-load.js';

interface Asked {
  messages: { role: string; content: string }[];
  tools: object[];
  max_tokens: number;
}

const TELLS_CACHED = { prompt_tokens_details: { cached_tokens: 75 } };
/** What the server was asked, and what it says besides of a prompt of 100 tokens. */
let asked: Asked[] = [];
let details: object = TELLS_CACHED;
let isRefusing = false;
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
  asked.push(body);
  if (isRefusing) return void response.writeHead(503).end('busy');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (value: unknown) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  for (let i = 0; i < body.max_tokens; i++) send({ choices: [{ delta: { content: `a${asked.length} ` } }] });
  send({ choices: [], usage: { prompt_tokens: 100, completion_tokens: body.max_tokens, ...details } });
  response.end('data: [DONE]\n\n');
});
const load: AgentsLoad = {
  ...{ url: '', model: 'm', agents: 3, turns: 2, functions: 4, historyWords: 600 },
  ...{ resultWords: 5, generate: 2, seed: 7 },
};

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  load.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.closeAllConnections());

const words = ({ content }: { content: string }) => content.split(' ').length;

it('gives each agent a history of its own behind instructions that all have', () => {
  const [one, other] = [historyOf(load, 0), historyOf(load, 1)];
  expect(one.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(one.slice(1).reduce((sum, message) => sum + words(message), 0)).toBe(600);
  expect(other[0]).toEqual(one[0]);
  expect(other[1]).not.toEqual(one[1]);
  expect(historyOf(load, 0)).toEqual(one);
  expect(historyOf({ ...load, seed: 8 }, 0)[1]).not.toEqual(one[1]);
  expect(historyOf({ ...load, historyWords: 400 }, 0).at(-1)!.role).toBe('user');
});

it('defines functions of different names', () => {
  const names = functionsOf(129).map((tool) => (tool as { function: { name: string } }).function.name);
  expect(new Set(names).size).toBe(129);
});

it('goes on with what was answered, and counts what the server took from its cache', async () => {
  asked = [];
  const rates = await agentsRates(load);
  expect(asked).toHaveLength(9);
  expect(asked.every(({ tools }) => tools.length === 4)).toBe(true);
  const lengths = asked.map(({ messages }) => messages.length);
  expect(lengths.toSorted((a, b) => a - b)).toEqual([4, 4, 4, 6, 6, 6, 8, 8, 8]);
  const [last] = asked.filter(({ messages }) => messages.length === 8);
  expect(last!.messages[4]).toMatchObject({
    role: 'assistant',
    content: expect.stringMatching(/^a\d a\d $/),
  });
  expect(words(last!.messages[5]!)).toBe(5);
  expect(rates).toMatchObject({ cachedShare: 0.75, computedTokens: 25 });
  expect(rates.tokensPerSecond).toBeGreaterThan(0);
  expect(rates.fairness).toBeGreaterThan(0);
  expect(rates.fairness).toBeLessThanOrEqual(1);
  expect(rates.laterP99).toBeGreaterThanOrEqual(rates.laterP50);
  expect(rates.turnP50).toBeGreaterThanOrEqual(rates.laterP50);
});

it('says nothing of caches where the server does not', async () => {
  details = {};
  const rates = await agentsRates(load);
  details = TELLS_CACHED;
  expect(rates.cachedShare).toBeNaN();
  expect(rates.computedTokens).toBeNaN();
});

it('ends with what a server refuses', async () => {
  isRefusing = true;
  await expect(agentsRates(load)).rejects.toThrow(/answers 503: busy/);
  isRefusing = false;
});
