import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { type Context, Hono } from 'hono';
import type { ApiKeys } from '../server/web/access/api-keys.js';
import { requireApiKey } from '../server/web/access/auth.js';
import { type AllowedHosts, requireKnownHost } from '../server/web/access/host-check.js';
import { type AllowedOrigins, crossOrigin, refuseOtherPages } from '../server/web/access/origin-check.js';
import type { AppEnv } from '../server/web/app-env.js';
import { toApiError } from '../server/web/errors.js';
import { mcpService, type Offer } from './mcp-service.js';

/** Bytes of the longest message of a client. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

export interface HttpServiceOptions {
  offer: Promise<Offer>;
  host: string;
  /** 0 picks a free one. */
  port: number;
  apiKeys: ApiKeys;
  allowedHosts: AllowedHosts;
  corsOrigins: AllowedOrigins;
}

export interface HttpService {
  url: string;
  close(): Promise<void>;
}

/**
 * Listens for clients of the protocol over Streamable HTTP at /mcp. Requests are independent: nothing is kept
 * between two.
 */
export async function listenForMcp(options: HttpServiceOptions): Promise<HttpService> {
  const { offer, host, port, apiKeys, allowedHosts, corsOrigins } = options;
  const app = new Hono<AppEnv>();
  app.onError((error) => toApiError(error).response());
  app.use(requireKnownHost(allowedHosts));
  if (corsOrigins.length > 0) app.use(crossOrigin(corsOrigins));
  app.use(refuseOtherPages(corsOrigins));
  app.use(requireApiKey(apiKeys, () => false));
  app.post('/mcp', (c) => answer(c, offer));
  app.on(['GET', 'DELETE'], '/mcp', (c) => c.text('There are no sessions here.', 405, { allow: 'POST' }));
  const server = createAdaptorServer({ fetch: app.fetch });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  const { port: taken } = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${name}:${taken}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

async function answer(c: Context<AppEnv>, offer: Promise<Offer>): Promise<Response> {
  const service = mcpService(offer);
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: true,
    maxRequestBodySize: MAX_MESSAGE_BYTES,
  });
  await service.connect(transport);
  // A client that leaves ends what it has asked for.
  c.req.raw.signal.addEventListener('abort', () => void service.close(), { once: true });
  return transport.handleRequest(c.req.raw);
}
