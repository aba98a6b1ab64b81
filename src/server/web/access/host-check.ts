import type { MiddlewareHandler } from 'hono';
import type { AppEnv } from '../app-env.js';
import { ApiError } from '../errors.js';
import { isLoopbackName } from './loopback.js';

/** Host names of the server besides the loopback ones, `.example.com` for all below it; * for any. */
export type AllowedHosts = readonly string[] | '*';

/**
 * Refuses a Host header that is not one of the server's names. A web page whose own name suddenly leads to
 * this machine (DNS rebinding) has the server's origin, as far as the browser knows; only the name gives it
 * away. HTTP/1.0 may name none.
 */
export function requireKnownHost(allowed: AllowedHosts): MiddlewareHandler<AppEnv> {
  const check = hostCheck(allowed);
  return async (c, next) => {
    check(c.req.header('host'));
    await next();
  };
}

/** A function that throws an ApiError for a Host header that is not one of the server's names. */
export function hostCheck(allowed: AllowedHosts): (host: string | undefined) => void {
  // Clients mostly come by one name, which takes some time to parse.
  let latest: string | undefined;
  return (host) => {
    if (host === undefined || host === latest || allowed === '*') return;
    if (!isKnown(host, allowed)) throw hostNotAllowed(host);
    latest = host;
  };
}

function isKnown(host: string, allowed: readonly string[]): boolean {
  const name = hostnameOf(host);
  if (name === null) return false;
  if (isLoopbackName(name)) return true;
  return allowed.some((one) => name === one || (one.startsWith('.') && name.endsWith(one)));
}

/** Host name of a Host header: `localhost` of `LOCALHOST:8000`; null where it is no host. */
export function hostnameOf(host: string): string | null {
  const url = `http://${host}`;
  // Characters of a path, a query or a user in a URL belong to no host.
  if (/[/\\?#@\s]/.test(host) || !URL.canParse(url)) return null;
  return new URL(url).hostname;
}

function hostNotAllowed(host: string): ApiError {
  const message =
    `This server is not known as '${host}': it answers to localhost, 127.0.0.1, [::1] and the names of --allowed-host, ` +
    'so that no web page can reach it under a name of its own.';
  return new ApiError(403, message, { type: 'permission_error', code: 'host_not_allowed' });
}
