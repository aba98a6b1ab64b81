import { afterEach, expect, it } from 'vitest';
import { FakeLlm, goodChat } from '../../loadgen/support/fake-llm.js';
import { warmCli } from '../support/warm-cli.js';

const runCli = warmCli();
let server: FakeLlm;

afterEach(() => server?.close().catch(() => {}));

const quick = (...args: string[]) => runCli(['bench', server.url, '--quick', ...args]);

it('gives the tokens per second of one client, of eight, and of prompts', async () => {
  server = await FakeLlm.start(goodChat);
  const { code, stdout, stderr } = await quick('--duration', '0.1');
  expect([code, stderr]).toStrictEqual([0, '']);
  const [one, eight, prompts, end] = stdout.split('\n');
  expect(one).toMatch(/^one client +[\d.]+ tokens\/s, first token after \d+ ms$/);
  expect(eight).toMatch(/^8 clients +[\d.]+ tokens\/s, first token after \d+ ms$/);
  expect(prompts).toMatch(/^prompts of 512 +[\d.]+ prompt tokens\/s, first token after \d+ ms$/);
  expect(end).toBe('');
  expect(server.asked.at(-1)!.body).toMatchObject({ max_tokens: 1 });
});

it('says how many requests failed, and why', async () => {
  let measured = 0;
  server = await FakeLlm.start((asked, response, number) => {
    // Requests that prepare a load are answered.
    if (asked.path !== '/v1/chat/completions' || asked.body.max_tokens !== 64 || measured++ < 2)
      return goodChat(asked, response, number);
    response.writeHead(503).end('{"error": {"message": "The tank is empty."}}');
  });
  const { stdout } = await quick('--duration', '0.1');
  expect(stdout).toMatch(/^8 clients +\d+ of \d+ requests failed: .*The tank is empty\./m);
});

it('refuses loads of the caller, and a server that does not answer', async () => {
  server = await FakeLlm.start(goodChat);
  expect(await quick('--rate', '4')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--rate is not for --quick, which has loads of its own.'),
  });
  const { url } = server;
  await server.close();
  expect(await runCli(['bench', url, '--quick'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not answer'),
  });
});
