import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { cleanEnvironment, cliPath, runCli, spawnCli, testCacheDir } from './support/skein-process.js';

const models = [
  `chat=${tinyModelPath('gqa')}`,
  `vectors=${tinyModelPath('bert-mean')}`,
  `scores=${tinyModelPath('bert-score')}`,
].flatMap((model) => ['--model', model]);
const environment = cleanEnvironment({ SKEIN_CACHE_DIR: testCacheDir, SKEIN_WEIGHTS: 'f32' });

// biome-ignore lint/suspicious/noExplicitAny: its shape is what is tested.
type Any = any;

async function call(client: Client, name: string, args: object): Promise<Any> {
  return client.callTool({ name, arguments: { ...args } });
}

describe('skein mcp over stdin and stdout', () => {
  let client: Client;
  let pid: number;

  beforeAll(async () => {
    client = new Client({ name: 'test', version: '1' });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [cliPath, 'mcp', ...models],
      env: environment as Record<string, string>,
      stderr: 'ignore',
    });
    await client.connect(transport);
    pid = transport.pid!;
  });

  afterAll(async () => {
    await client?.close();
    expect(() => process.kill(pid, 0)).toThrow();
  });

  it('lists a tool for each task that a model has', async () => {
    expect(client.getServerVersion()).toMatchObject({ name: 'skein' });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['complete', 'embed', 'rerank']);
    const [complete, embed, rerank] = tools as Any[];
    expect(complete.inputSchema.required).toEqual(['prompt']);
    expect(embed.inputSchema.properties.model).toMatchObject({ enum: ['vectors'], default: 'vectors' });
    expect(rerank.inputSchema.properties.model.enum).toEqual(['scores', 'vectors']);
    for (const { annotations } of tools) expect(annotations).toMatchObject({ readOnlyHint: true });
  });

  it('completes, embeds and reranks, with results of their schemas', async () => {
    // The library's client checks them against the tools' own schemas.
    await client.listTools();
    const ask = { prompt: 'the cat sat', max_tokens: 8, seed: 7, temperature: 0 };
    const first = await call(client, 'complete', ask);
    expect(first.isError).toBeFalsy();
    expect(first.structuredContent).toMatchObject({ finish_reason: 'length', completion_tokens: 8 });
    expect(first.content).toEqual([{ type: 'text', text: first.structuredContent.text }]);
    expect((await call(client, 'complete', ask)).structuredContent).toEqual(first.structuredContent);
    const embedded = await call(client, 'embed', { texts: ['the cat', 'a dog'] });
    const { embeddings } = embedded.structuredContent;
    expect(embeddings.map((one: number[]) => one.length)).toEqual([48, 48]);
    const documents = ['the cat sat on the mat', 'a dog', 'what is flying?'];
    const ranked = await call(client, 'rerank', { query: 'a dog', documents, top: 2 });
    const { results } = ranked.structuredContent;
    expect(results).toHaveLength(2);
    for (const { index, document } of results) expect(document).toBe(documents[index]);
    expect(results[0].score).toBeGreaterThanOrEqual(results[1].score);
    const byVectors = await call(client, 'rerank', { query: 'a dog', documents, model: 'vectors' });
    expect(byVectors.structuredContent.results[0]).toMatchObject({ index: 1 });
  });

  it('says what is wrong with a call, and goes on', async () => {
    const wrong = [
      ['nothing', {}, /There is no tool 'nothing': the tools are complete, embed, rerank\./],
      ['complete', {}, /prompt/],
      ['complete', { prompt: 'a', tokens: 3 }, /tokens/],
      ['complete', { prompt: 'a', model: 'vectors' }, /model/],
      ['complete', { prompt: 'the '.repeat(5000) }, /context/],
      ['embed', { texts: [] }, /texts/],
      ['rerank', { query: 'a', documents: Array(257).fill('a') }, /documents/],
    ] as const;
    for (const [name, args, message] of wrong) {
      const { isError, content } = await call(client, name, args);
      expect(isError, name).toBe(true);
      expect(content[0].text).toMatch(message);
    }
    expect((await call(client, 'embed', { texts: ['a'] })).isError).toBeFalsy();
  });

  it('ends a call that its client cancels', async () => {
    const leaving = new AbortController();
    const args = { prompt: 'the cat', max_tokens: 100 };
    const asked = client.callTool({ name: 'complete', arguments: args }, undefined, {
      signal: leaving.signal,
    });
    leaving.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    expect((await call(client, 'embed', { texts: ['a'] })).isError).toBeFalsy();
  });
});

describe('skein mcp', () => {
  it('writes nothing to stdout but the protocol, also where the model is built', async () => {
    const child = spawn(process.execPath, [cliPath, 'mcp', ...models.slice(2, 4)], {
      env: { ...environment, SKEIN_LOG_LEVEL: 'debug' },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    const send = (message: object) =>
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const clientInfo = { name: 'test', version: '1' };
    send({
      ...{ id: 1, method: 'initialize' },
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo },
    });
    send({ method: 'notifications/initialized' });
    send({ id: 2, method: 'tools/call', params: { name: 'embed', arguments: { texts: ['a'] } } });
    await expect.poll(() => out.split('\n').length).toBe(3);
    child.stdin.end();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as Any).id)).toEqual([1, 2]);
  });

  it('fails where a model cannot be loaded, and for a command line that is not understood', async () => {
    const child = spawn(process.execPath, [cliPath, 'mcp', '--model', '/nowhere'], {
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (data) => {
      out += data;
    });
    child.stderr.on('data', (data) => {
      err += data;
    });
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('/nowhere');
    expect((await runCli(['mcp', '--prot', '1'])).code).toBe(2);
    expect((await runCli(['mcp', '--port', 'x', ...models.slice(0, 2)])).code).toBe(2);
  });

  it('listens with --port: to its client, and to no foreign page, host or stranger', async () => {
    const args = [cliPath, 'mcp', '--port', '0', '--api-key', 'secret', ...models.slice(2, 4)];
    const { child, output, ended } = spawnCli(args, { SKEIN_CACHE_DIR: testCacheDir, SKEIN_WEIGHTS: 'f32' });
    await expect.poll(() => output().stderr).toMatch(/the tools are at http\S+/);
    const url = /at (http\S+)/.exec(output().stderr)![1]!;
    const open = async (headers: Record<string, string>) => {
      const client = new Client({ name: 'test', version: '1' });
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
      return client;
    };
    const authorization = 'Bearer secret';
    const client = await open({ authorization });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['embed', 'rerank']);
    expect((await call(client, 'embed', { texts: ['a'] })).structuredContent.embeddings[0]).toHaveLength(48);
    await client.close();
    await expect(open({})).rejects.toThrow(/API key/);
    const post = (headers: Record<string, string>) =>
      fetch(url, { method: 'POST', headers: { authorization, ...headers }, body: '{}' });
    expect((await post({ origin: 'https://example.com' })).status).toBe(403);
    expect((await post({ 'content-type': 'application/json' })).status).toBeGreaterThanOrEqual(400);
    expect((await fetch(url, { headers: { authorization } })).status).toBe(405);
    expect(output().stdout).toBe('');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0 });
  });
});
