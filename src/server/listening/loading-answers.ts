import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorBody as anthropicBody } from '../anthropic/errors.js';
import { isOfProtocol } from '../kserve/errors.js';
import { isOfOllama } from '../ollama/errors.js';
import { type AnswerHttp, HttpSocket, type HttpSocketOptions } from '../sockets/http-socket.js';
import { answerAfterBody } from '../sockets/late-body.js';
import { type AllowedHosts, hostCheck } from '../web/access/host-check.js';
import { type ApiError, stillLoading, toApiError } from '../web/errors.js';
import { noteAnswer, refuse } from '../web/raw-refusals.js';
import { requestIdOf } from '../web/request-ids.js';
import { loadingReason } from '../web/server-state.js';

interface Answer {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

const WELL: Readonly<Record<string, object>> = {
  '/live': { status: 'live' },
  '/v2/health/live': { live: true },
};

/**
 * Listens before the startup models are loaded, so that probes see a live server that is not ready. It
 * answers every request with that and ends the connection: the next one reaches the full server.
 */
export async function listenWhileLoading(
  options: HttpSocketOptions & { allowedHosts: AllowedHosts },
  models: readonly string[],
): Promise<HttpSocket> {
  const answer = loadingAnswers(models, options.allowedHosts, (incoming) => socket.refusalOf(incoming));
  const socket: HttpSocket = await HttpSocket.listen(options, answer);
  return socket;
}

/** Answers of a server whose models are being loaded. */
function loadingAnswers(
  models: readonly string[],
  allowed: AllowedHosts,
  refusalOf: (incoming: IncomingMessage) => ApiError | null,
): AnswerHttp {
  const checkHost = hostCheck(allowed);
  return (incoming, outgoing) => {
    noteAnswer(outgoing);
    const refusal = refusalOf(incoming);
    if (refusal !== null) return refuse(outgoing, refusal);
    answerAfterBody(incoming, outgoing);
    const path = pathOf(incoming);
    try {
      checkHost(incoming.headers.host);
      send(outgoing, answerTo(path, models));
    } catch (error) {
      send(outgoing, errorAnswer(path, toApiError(error)));
    }
  };
}

function answerTo(path: string, models: readonly string[]): Answer {
  const well = WELL[path];
  if (well !== undefined) return { status: 200, body: well };
  const reason = loadingReason(models);
  if (path === '/health' || path === '/ping') {
    return { status: 503, body: { status: 'loading', reason, restarts: 0, loading: models, models: {} } };
  }
  if (path === '/v2/health/ready') return { status: 400, body: { error: `Server not ready: ${reason}` } };
  return errorAnswer(path, stillLoading(reason));
}

/** An error in the form of the API that the path belongs to. */
function errorAnswer(path: string, error: ApiError): Answer {
  const { status, message, headers } = error;
  if (isOfProtocol(path) || isOfOllama(path)) return { status, body: { error: message }, headers };
  const isAnthropic = /^(\/v1)?\/messages(\/|$)/.test(path);
  return { status, body: isAnthropic ? anthropicBody(error) : error.body(), headers };
}

function send(outgoing: ServerResponse, { status, body, headers = {} }: Answer): void {
  const requestId = requestIdOf(outgoing.req.headers['x-request-id']);
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'x-request-id': requestId,
    ...headers,
    connection: 'close',
  });
  outgoing.end(JSON.stringify(body));
}

function pathOf({ url = '' }: IncomingMessage): string {
  const path = url.split('?', 1)[0]!;
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}
