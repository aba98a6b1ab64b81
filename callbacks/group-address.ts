import { option, says } from '../base/named-text.js';
import { ParameterError } from './sampling-params.js';

/**
 * Where the ranks of a group meet: a path, where all are on one machine and share memory, or the host and port of rank 0, where they are
 * on several and the bytes go over TCP.
 */
export type GroupAddress = { path: string } | { host: string; port: number };

/** Forms of an address, as the end of a sentence. */
export const ADDRESS_FORMS =
  'a path with a /, where all ranks are on one machine, or host:port of rank 0, with a port from 1 to 65535';

/** The address that a text has; null: it has none. */
export function addressIn(text: string): GroupAddress | null {
  if (text.includes('/')) return { path: text };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : null;
}

/** @throws ParameterError if the text is neither a path nor host:port */
export function parseGroupAddress(text: string): GroupAddress {
  const address = addressIn(text);
  if (address !== null) return address;
  throw new ParameterError(
    'ranks',
    says`${option('ranks.address')} is ${JSON.stringify(text)}; it must be ${ADDRESS_FORMS}.`,
  );
}

/** The address as its user wrote it, or would. */
export function addressText(address: GroupAddress): string {
  if ('path' in address) return address.path;
  const { host, port } = address;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isShared(address: GroupAddress): address is { path: string } {
  return 'path' in address;
}
