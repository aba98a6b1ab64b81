import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';

export interface Asked {
  path: string;
  headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: what clients send
  body: any;
}

export type Answer = (asked: Asked, response: ServerResponse, number: number) => void | Promise<void>;

/** Answers a GET of any path but /v1/models. */
export type Get = (url: string, response: ServerResponse) => void;
const notFound: Get = (_, response) => void response.writeHead(404).end();

/** A server of scripted answers. `number` counts the requests of POST from 0. */
export class FakeLlm {
  readonly asked: Asked[] = [];
  /** Connections that were ever open. */
  connections = 0;
  readonly #server: Server;
  readonly #scheme: string;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, scheme: string) {
    this.#server = server;
    this.#scheme = scheme;
  }

  /** With `tls` it speaks https. */
  static async start(
    answer: Answer,
    get: Get = notFound,
    tls: ServerOptions | null = null,
  ): Promise<FakeLlm> {
    const listener = async (request: IncomingMessage, response: ServerResponse) => {
      if (request.url === '/v1/models') {
        response.end(JSON.stringify({ data: [{ id: 'fake' }] }));
        return;
      }
      if (request.method !== 'POST') {
        get(request.url!, response);
        return;
      }
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const text = Buffer.concat(parts).toString();
      let body: unknown = text;
      try {
        body = JSON.parse(text);
      } catch {}
      const asked: Asked = { path: request.url!, headers: request.headers, body };
      const number = fake.asked.push(asked) - 1;
      await answer(asked, response, number);
    };
    const server = tls === null ? createServer(listener) : createSecureServer(tls, listener);
    const fake = new FakeLlm(server, tls === null ? 'http' : 'https');
    server.on('connection', (socket) => {
      fake.connections++;
      fake.#sockets.add(socket);
      socket.on('close', () => fake.#sockets.delete(socket)).on('error', () => {});
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  /** Ends all connections with a reset and takes no new ones. */
  die(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const event = (data: unknown) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/** A chunk of a chat, as servers write it. */
export const piece = (content: string, finish: string | null = null) =>
  event({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'fake',
    choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  });

export const usage = (prompt: number, completion: number) =>
  event({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion } });

/** A whole stream of these pieces. */
export function chatStream(pieces: readonly string[], promptTokens = 7): string {
  return `${pieces.map((text) => piece(text)).join('')}${piece('', 'stop')}${usage(promptTokens, pieces.length)}${event('[DONE]')}`;
}

export function sendStream(response: ServerResponse, text: string | Buffer): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.end(text);
}

/** Words of all messages of a chat. */
export function wordsOf({ body }: Asked): number {
  const messages = body.messages as { content: string }[];
  return messages.reduce((sum, { content }) => sum + content.split(' ').length, 0);
}

/** Answers a chat with as many tokens as it asks for; counts 3 tokens of a template and one for each word. */
export const goodChat: Answer = (asked, response) => {
  const tokens = Array.from({ length: asked.body.max_tokens ?? 4 }, (_, i) => ` t${i}`);
  if (asked.body.stream) return sendStream(response, chatStream(tokens, 3 + wordsOf(asked)));
  response.writeHead(200, { 'content-type': 'application/json' }).end(
    JSON.stringify({
      choices: [{ message: { content: tokens.join('') }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3 + wordsOf(asked), completion_tokens: tokens.length },
    }),
  );
};
