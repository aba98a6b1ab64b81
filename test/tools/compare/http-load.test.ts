import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { loadHttp } from '../../../tools/compare/http-load.js';

type Answer = (body: { messages: { content: string }[] }, response: ServerResponse) => void;

let close: (() => void) | null = null;

afterEach(() => {
  close?.();
  close = null;
});

async function serve(answer: Answer): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const text of request) body += text;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    answer(JSON.parse(body), response);
  });
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const piece = (content: string) => event({ choices: [{ delta: { content } }] });
const usage = (tokens: number) => event({ choices: [], usage: { completion_tokens: tokens } });

const load = { model: 'm', clients: 3, requests: 2, promptWords: 4, generate: 2 };

describe('loadHttp', () => {
  it('counts the tokens that the server counts, and the times of pieces with text', async () => {
    const prompts = new Set<string>();
    const url = await serve(({ messages }, response) => {
      prompts.add(messages[0]!.content);
      response.end(`${piece('') + piece('a') + piece('b') + usage(2)}data: [DONE]\n\n`);
    });
    const rates = await loadHttp({ ...load, url });
    expect(rates.failed).toBe(0);
    expect(prompts.size).toBe(6);
    expect(rates.tokensPerSecond).toBeGreaterThan(0);
    expect(rates.firstTokenP50).toBeGreaterThan(0);
    expect(rates.firstTokenP99).toBeGreaterThanOrEqual(rates.firstTokenP50);
    expect(rates.interTokenP99).toBeGreaterThanOrEqual(rates.interTokenP50);
  });

  it('counts a stream without its end as failed, and goes on', async () => {
    let count = 0;
    const url = await serve((_, response) => {
      const isCut = count++ % 2 === 0;
      response.write(piece('a'));
      if (isCut) response.end();
      else response.end(`${usage(1)}data: [DONE]\n\n`);
    });
    const rates = await loadHttp({ ...load, url });
    expect(rates.failed).toBe(3);
    expect(count).toBe(6);
  });

  it('opens a connection for each request, or one for each client', async () => {
    const sockets = new Set<unknown>();
    const url = await serve((_, response) => {
      sockets.add(response.socket);
      response.end(`${piece('a') + usage(1)}data: [DONE]\n\n`);
    });
    await loadHttp({ ...load, url });
    expect(sockets.size).toBe(6);
    sockets.clear();
    await loadHttp({ ...load, url, keepAlive: true });
    expect(sockets.size).toBeLessThan(6);
  });

  it('counts every request as failed where nobody listens', async () => {
    const url = await serve(() => {});
    close?.();
    expect((await loadHttp({ ...load, url })).failed).toBe(6);
  });
});
