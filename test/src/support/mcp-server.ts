import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** A tool as a server lists it, which may lie. */
export type Listed = Record<string, unknown>;

export interface McpScript {
  /** Tools by the number of the list that is asked for. */
  list?: (asked: number, cursor: string | undefined) => { tools: Listed[]; nextCursor?: string };
  /** Result of a call; the signal is aborted where the client cancels it. */
  call?: (name: string, args: Record<string, unknown>, signal: AbortSignal) => Promise<object> | object;
  /** Answers an HTTP request in place of the protocol; false: the protocol does. */
  intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface TestMcpServer {
  url: string;
  lists: number;
  calls: { name: string; args: Record<string, unknown> }[];
  cancelled: number;
  /** Headers of all requests. */
  headers: IncomingMessage['headers'][];
  methods: string[];
  close(): Promise<void>;
}

const number = { type: 'integer', minimum: 0, maximum: 9 };
export const ADD: Listed = {
  name: 'add',
  description: 'Adds two numbers.',
  inputSchema: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] },
  annotations: { readOnlyHint: true },
};
export const DROP: Listed = { name: 'drop', description: 'Drops all.', inputSchema: { type: 'object' } };

export const text = (value: string, isError = false) => ({
  content: [{ type: 'text', text: value }],
  isError,
});

/** A server of tools by the official library, each request with a connection of its own. */
export async function mcpServer({ list, call, intercept }: McpScript = {}): Promise<TestMcpServer> {
  const found: TestMcpServer = {
    ...{ url: '', lists: 0, calls: [], cancelled: 0, headers: [], methods: [] },
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const page = list?.(found.lists, params?.cursor) ?? { tools: [ADD, DROP] };
      found.lists++;
      return page as never;
    });
    server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }) => {
      found.calls.push({ name, args });
      const left = new AbortController();
      response.on('close', () => {
        if (response.writableFinished) return;
        found.cancelled++;
        left.abort();
      });
      if (call !== undefined) return (await call(name, args, left.signal)) as never;
      return text(String(Number(args.a) + Number(args.b))) as never;
    });
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    await transport.handleRequest(request, response);
  };
  const http = createServer((request, response) => {
    found.headers.push(request.headers);
    found.methods.push(request.method ?? '');
    if (intercept?.(request, response) === true) return;
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  found.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  return found;
}
