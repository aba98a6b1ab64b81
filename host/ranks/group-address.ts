import { option, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

/**
 * Where the ranks of a group meet: a path, where all are on one machine and share memory, or the host and port of rank 0, where they are
 * on several and the bytes go over TCP.
 */
export type GroupAddress = { path: string } | { host: string; port: number };

/** @throws ParameterError if the text is neither a path nor host:port */
export function parseGroupAddress(text: string): GroupAddress {
  if (text.includes('/')) return { path: text };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new ParameterError(
    'ranks',
    says`${option('ranks.address')} is ${JSON.stringify(text)}; it must be a path with a /, where all ranks are on one machine, or host:port of rank 0.`,
  );
}

export function isShared(address: GroupAddress): address is { path: string } {
  return 'path' in address;
}
