import { option, says } from '../../base/named-text.js';
import { SkeinError } from '../../base/skein-error.js';

/** An address of ZeroMQ, or a key for it, cannot be used. */
export class EndpointError extends SkeinError {
  override readonly code = 'SKEIN_ENDPOINT';
  override name = 'EndpointError';
}

/** An address of a socket. */
export interface Endpoint {
  /** As ZeroMQ takes it, such as tcp://127.0.0.1:5557. */
  address: string;
  /** The socket listens there; false: it connects to a socket that does. */
  isBound: boolean;
  /** Other machines are reached, or reach it. */
  isRemote: boolean;
}

const WILDCARDS = ['*', '0.0.0.0', '[::]', '::'];
const LONGEST = 512;

/**
 * Reads tcp://HOST:PORT or ipc://PATH. Whether the socket listens or connects follows from the host, as in
 * vLLM: it listens at * and at ipc paths. It listens at loopback addresses too (vLLM connects there), because
 * no other process on this machine listens there.
 * @param name of the option, for errors. @throws EndpointError
 */
export function readEndpoint(name: string, text: string): Endpoint {
  const [, sign = '', scheme = '', rest = ''] = /^([@>]?)(tcp|ipc):\/\/(.+)$/.exec(text) ?? [];
  const fail = (what: string) =>
    new EndpointError(
      says`${option(name)} is "${text}"; ${what}, such as tcp://*:5557 to listen, tcp://HOST:5557 to connect, or ipc:///run/skein/kv.`,
    );
  if (scheme === '' || text.length > LONGEST) throw fail('an address of ZeroMQ is expected');
  const address = `${scheme}://${rest}`;
  if (scheme === 'ipc') return { address, isBound: sign !== '>', isRemote: false };
  const [, host = '', port = ''] = /^(\*|\[[\da-fA-F:.]+\]|[\w.-]+|::):(\d+|\*)$/.exec(rest) ?? [];
  if (host === '') throw fail('HOST:PORT is expected after tcp://');
  if (port !== '*' && Number(port) > 65535) throw fail('a port is 0 to 65535');
  const isLoopback = isLoopbackHost(host);
  const isBound = sign === '@' || (sign !== '>' && (isLoopback || WILDCARDS.includes(host)));
  if (!isBound && (WILDCARDS.includes(host) || port === '*' || port === '0')) {
    throw fail('a host and a port to connect to are expected');
  }
  return { address, isBound, isRemote: !isLoopback };
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
}
