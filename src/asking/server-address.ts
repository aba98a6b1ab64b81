import { asSentence } from '../../base/sentences.js';
import { holdsSecret, UsageError } from '../errors/user-errors.js';

/** Base of a server's URLs, from an address with or without /v1; without a slash at its end. @throws UsageError. */
export function serverAddress(text: string, where: string): string {
  if (holdsSecret(text)) {
    throw new UsageError(
      `${where} holds a user or a password; give the address alone, and a key with --api-key.`,
    );
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `${where} is ${JSON.stringify(text)}; it must be an address such as http://127.0.0.1:8000.`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; is the server running',
  ENOTFOUND: 'no machine of this name is known',
  EAI_AGAIN: 'the name of the machine cannot be looked up just now',
  ECONNRESET: 'the connection was cut off',
  UND_ERR_SOCKET: 'the connection was cut off',
  EHOSTUNREACH: 'there is no way to that machine',
  ENETUNREACH: 'there is no network that leads there',
  ETIMEDOUT: 'it did not answer in time',
  UND_ERR_CONNECT_TIMEOUT: 'it did not answer in time',
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'no known authority vouches for its certificate; NODE_EXTRA_CA_CERTS=FILE makes it trusted',
  SELF_SIGNED_CERT_IN_CHAIN:
    'no known authority vouches for its certificate; NODE_EXTRA_CA_CERTS=FILE makes it trusted',
};

/** Describes in words why a server could not be reached. */
export function connectionProblem(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  if (name === 'TimeoutError') return 'it did not answer in time.';
  return asSentence(PROBLEMS[cause?.code ?? ''] ?? (cause?.message || message));
}
