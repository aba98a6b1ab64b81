import type { Context } from 'hono';
import type { Platform } from '../../inferring/platform.js';
import type { AppEnv } from '../../web/app-env.js';
import { ApiError, shuttingDown } from '../../web/errors.js';
import { ENGINE_HEADER, engineOf } from '../../web/exchange.js';
import { upgradeOf } from '../../web/upgrade.js';
import type { KserveServices } from '../services.js';
import { InferSocket, SOCKET_BYTES } from './infer-socket.js';
import type { SocketModel } from './socket-request.js';

/**
 * Opens a WebSocket for requests, once the checks of every request are passed. The answer is empty: the handshake follows it.
 * @param model null: each message names one @throws ApiError, InferError for a refusal, which is a plain answer
 */
export function openSocket(
  c: Context<AppEnv>,
  platform: Platform,
  context: KserveServices,
  model: SocketModel,
): Response {
  const upgrade = upgradeOf(c.env?.incoming);
  if (upgrade === undefined) throw upgradeRequired();
  checkHandshake((name) => c.req.header(name));
  if (context.state.isDraining) throw shuttingDown(context.state.drainEndsInMs);
  if (model !== null) platform.repository.find(model.name, model.version);
  // The socket has an account of its own; a lack of room for it is reported now, by HTTP.
  c.get('memory').holdBody(SOCKET_BYTES);
  const { stallLimitMs } = context.eventStream;
  const asked = { caller: c.get('caller'), requestId: c.get('requestId'), path: c.req.path };
  const opening = { model, ...asked, admit: c.get('admit'), engine: engineOf(c.req.header(ENGINE_HEADER)) };
  const services = { ...context, platform, stallLimitMs };
  upgrade.accept((link) => new InferSocket(link, services, opening).begin());
  return new Response(null, { headers: ALREADY_SENT });
}

/** Signals to the HTTP library that nothing is to be sent. */
const ALREADY_SENT = { 'x-hono-already-sent': 'true' };

/** @throws ApiError for what is no handshake. Source: RFC 6455, 4.2.1 */
function checkHandshake(header: (name: string) => string | undefined): void {
  if (header('sec-websocket-version') !== '13') throw upgradeRequired();
  if (!/^[+/0-9A-Za-z]{22}==$/.test(header('sec-websocket-key') ?? '')) {
    throw new ApiError(400, "The header 'Sec-WebSocket-Key' is to be 16 bytes in base64.", {
      code: 'bad_handshake',
    });
  }
  if (Number(header('content-length') ?? 0) !== 0 || header('transfer-encoding') !== undefined) {
    throw new ApiError(400, 'A request for a WebSocket has no body.', { code: 'bad_handshake' });
  }
}

function upgradeRequired(): ApiError {
  const message =
    'This path is for WebSockets (version 13); POST to /v2/models/MODEL/infer takes one request.';
  // With `Connection: Upgrade`, too, some clients would take the answer for the handshake.
  const headers = { upgrade: 'websocket', 'sec-websocket-version': '13' };
  return new ApiError(426, message, { code: 'upgrade_required', headers });
}
