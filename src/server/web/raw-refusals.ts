import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from './errors.js';
import { requestIdOf } from './request-ids.js';

const CLOSE = { connection: 'close' };
/** Header of every answer: a browser does not guess what it is. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;

export function notHttp(reason: string): ApiError {
  return new ApiError(400, `This is not a request that HTTP allows: ${reason}.`, {
    code: 'bad_request',
    headers: CLOSE,
  });
}

/** Latest answer on each connection. */
const answers = new WeakMap<Duplex, ServerResponse>();

/** Notes the answer that is now made on its connection. */
export function noteAnswer(outgoing: ServerResponse): void {
  answers.set(outgoing.req.socket, outgoing);
}

/**
 * Answers requests that Node.js cannot parse: it would close the connection without a word, or with one that no client
 * can read.
 */
export function refuseWhatIsNoRequest(server: Server): void {
  server.on('clientError', refuseUnparsed);
  server.on('connect', (_, socket) => {
    socket.on('error', () => socket.destroy());
    const message = 'This server is no proxy: it takes GET, POST and DELETE, not CONNECT.';
    const headers = { allow: 'GET, POST, DELETE' };
    endWith(
      socket,
      '405 Method Not Allowed',
      new ApiError(405, message, { code: 'method_not_allowed', headers }),
    );
  });
  server.on('checkExpectation', (incoming, outgoing) => {
    const message = `'Expect: ${incoming.headers.expect}' is not supported; 100-continue is.`;
    refuse(outgoing, new ApiError(417, message, { code: 'unsupported_expectation' }));
  });
}

/**
 * Why a request is refused that Node.js accepts but that others could understand differently; null: it is not. HTTP/1.0
 * needs no Host.
 */
export function refusalOfHead({ headers, rawHeaders, httpVersion }: IncomingMessage): ApiError | null {
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1) return notHttp('it has more than one Host header');
  if (!headers.host && (hosts === 1 || httpVersion !== '1.0')) return notHttp('it has no Host header');
  const coding = headers['transfer-encoding'];
  if (coding === undefined || coding.toLowerCase() === 'chunked') return null;
  const message = `The Transfer-Encoding '${coding}' is not supported; send the body as it is, or in chunks.`;
  return new ApiError(415, message, { code: 'unsupported_encoding' });
}

/** Answers instead of the app, and ends the connection: further bytes on it may be the rest of a body. */
export function refuse(outgoing: ServerResponse, refusal: ApiError): void {
  noteAnswer(outgoing);
  const body = JSON.stringify(refusal.body());
  outgoing.statusCode = refusal.status;
  const headers = {
    'content-type': 'application/json',
    [NO_SNIFF[0]]: NO_SNIFF[1],
    'x-request-id': requestIdOf(outgoing.req.headers['x-request-id']),
    ...refusal.headers,
    ...CLOSE,
  };
  for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value);
  outgoing.end(body);
}

/** Refuses a request that cannot be parsed, which has no response object: writes to the socket, and closes it. */
function refuseUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
  const answer = answers.get(socket);
  const isRefused = answer?.writableEnded === true && answer.getHeader('connection') === CLOSE.connection;
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
  } else if (isRefused) {
    socket.end();
  } else if (answer?.headersSent === true && !answer.writableFinished) {
    // A second answer would be read as part of the one in progress.
    socket.destroy();
  } else if (error.code === 'HPE_HEADER_OVERFLOW') {
    endWith(socket, '431 Request Header Fields Too Large', notHttp('its headers are too long'));
  } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    endWith(socket, '408 Request Timeout', notHttp('it did not come in time'));
  } else endWith(socket, '400 Bad Request', notHttp('it cannot be parsed'));
}

function endWith(socket: Duplex, status: string, refusal: ApiError): void {
  const body = JSON.stringify(refusal.body());
  const headers = {
    ...refusal.headers,
    ...CLOSE,
    [NO_SNIFF[0]]: NO_SNIFF[1],
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${body}`);
}
