import type { ClientRequest, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { onAbort } from '../../../../base/on-abort.js';
import { SkeinError } from '../../../../base/skein-error.js';
import { PICTURE_LIMITS } from '../../../../models/images/picture-limits.js';
import type { FileLoading } from '../picture-files.js';
import { isPublicAddress } from './public-address.js';
import type { ResolveHost } from './resolve-host.js';

/** Characters of an address. */
const MAX_LENGTH = 4096;

/** Why a picture is not fetched, as the end of a sentence about its address. */
export class NotFetchedError extends SkeinError {
  override name = 'NotFetchedError';
  override readonly code = 'SKEIN_PICTURE_NOT_FETCHED';
}

/** How a connection to a picture's server is made. */
export interface Network {
  resolve: ResolveHost;
  /** Connects to an address, which no name has to be looked up for. */
  dial: (address: string) => Socket;
  /** Certificates of those who vouch for servers; default: those of Node.js. */
  ca?: string | undefined;
}

/** @throws NotFetchedError for an address that is not https, or has another port, a user or a password */
export function pictureUrl(text: string): URL {
  if (text.length > MAX_LENGTH)
    throw new NotFetchedError(`has ${text.length} characters, and an address may have ${MAX_LENGTH}`);
  if (!URL.canParse(text)) throw new NotFetchedError('is no address');
  const url = new URL(text);
  if (url.protocol !== 'https:') throw new NotFetchedError('is no https: address, and no other is fetched');
  if (url.username !== '' || url.password !== '')
    throw new NotFetchedError('has a user or a password, and none is sent');
  if (url.port !== '')
    throw new NotFetchedError(`has the port ${url.port}, and none but 443 is connected to`);
  return url;
}

/**
 * Fetches a picture from a public address. Its name is resolved once, all its addresses have to be public, and the connection goes to the
 * first of them: what the name's server says later has no bearing. No redirect is followed, and no proxy is used.
 * @param loading its signal ends everything @throws NotFetchedError; what `take` throws; the signal's reason
 */
export async function fetchPicture(
  url: URL,
  network: Network,
  { take, signal }: FileLoading & { signal: AbortSignal },
): Promise<Uint8Array> {
  const address = await publicAddress(url.hostname, network.resolve, signal);
  signal.throwIfAborted();
  const asked = requestTo(url, address, network);
  const forget = onAbort(signal, () => asked.destroy());
  try {
    const response = await responseTo(asked);
    checkResponse(response);
    return await bodyOf(response, take);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    forget();
    asked.destroy();
  }
}

/** The body of a response, whose bytes are counted as they come. */
function bodyOf(response: IncomingMessage, take: (bytes: number) => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    response.on('data', (chunk: Buffer) => {
      try {
        take(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        reject(error);
      }
    });
    response.on('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', (error) => reject(inWords(error)));
    response.on('close', () => reject(brokenOff()));
  });
}

/** Addresses of IPv6 have brackets in URLs. */
const withoutBrackets = (hostname: string) => hostname.replace(/^\[|\]$/g, '');

/** The address of a host. @throws NotFetchedError for a host with an address that is not public */
async function publicAddress(hostname: string, resolve: ResolveHost, signal: AbortSignal): Promise<string> {
  const literal = withoutBrackets(hostname);
  let addresses: readonly string[];
  try {
    addresses = isIP(literal) === 0 ? await resolve(hostname, signal) : [literal];
  } catch {
    signal.throwIfAborted();
    throw new NotFetchedError('has a host whose name is not found');
  }
  const [first] = addresses;
  // Naming the address would reveal names that only this network knows.
  if (first === undefined || !addresses.every(isPublicAddress))
    throw new NotFetchedError('has a host with no public address');
  return first;
}

function requestTo(
  { hostname, pathname, search }: URL,
  address: string,
  { dial, ca }: Network,
): ClientRequest {
  const host = withoutBrackets(hostname);
  const name = isIP(host) === 0 ? { servername: host } : {};
  const tls = { host, ...name, ca, rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] };
  return request({
    method: 'GET',
    path: pathname + search,
    headers: {
      host: hostname,
      accept: 'image/png, image/jpeg, image/webp, image/gif',
      'accept-encoding': 'identity',
      'user-agent': 'skein',
    },
    createConnection: () => {
      const socket = dial(address);
      const secure = connectTls({ ...tls, socket });
      // An error before there is a connection is that of this socket alone.
      socket.on('error', (error) => secure.destroy(error));
      return secure;
    },
  });
}

/** The answer to a request, which is sent now. */
function responseTo(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.on('response', resolve);
    asked.on('error', (error) => reject(inWords(error)));
    // Such as an answer that goes over to another protocol.
    asked.on('close', () => reject(brokenOff()));
    asked.end();
  });
}

/** @throws NotFetchedError for anything but a file as it is, of a length that pictures may have */
function checkResponse({ statusCode = 0, headers }: IncomingMessage): void {
  if (statusCode >= 300 && statusCode < 400)
    throw new NotFetchedError('leads to another address, and none is followed');
  if (statusCode !== 200) throw new NotFetchedError(`was answered with the status ${statusCode}`);
  const { 'content-encoding': encoding = 'identity', 'content-length': length } = headers;
  if (encoding !== 'identity')
    throw new NotFetchedError(`was answered with the encoding ${encoding.slice(0, 16)}`);
  if (Number(length) > PICTURE_LIMITS.maxFileBytes)
    throw new NotFetchedError(
      `has ${length} bytes, and pictures may have ${PICTURE_LIMITS.maxFileBytes} together`,
    );
}

const brokenOff = () => new NotFetchedError('was not answered to the end');

/** An error of a connection, of which a client learns only its kind. */
function inWords({ code, message }: NodeJS.ErrnoException): NotFetchedError {
  return new NotFetchedError(`cannot be read from its server (${code ?? message})`);
}
