import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { UNKNOWN_FIELDS_HEADER } from '../../../schemas/unknown-fields.js';
import type { AppEnv } from '../app-env.js';
import { ApiError } from '../errors.js';
import { isLoopbackName } from './loopback.js';

/**
 * Name for every origin on this machine: http or https, `localhost` and all below it, 127.0.0.0/8 or `[::1]`, any port;
 * and programs with windows of their own, whose pages are their own files and have origins that no page of the web can
 * have.
 */
export const LOOPBACK_ORIGINS = 'loopback';

/** Schemes of such programs' pages: Electron's by custom, Tauri's, Capacitor's, Visual Studio Code's. */
const APP_SCHEMES = /^(app|tauri|capacitor|vscode-webview|vscode-file):\/\/[^/?#\s]+$/;

/**
 * Origins of web pages, besides the server's own, that may use it; LOOPBACK_ORIGINS may be among them; * for
 * all.
 */
export type AllowedOrigins = readonly string[] | '*';

/**
 * Allows the given pages to read answers. Browsers ask, without a key, whether they may send one; the headers that they
 * name are allowed.
 */
export function crossOrigin(allowed: AllowedOrigins): MiddlewareHandler<AppEnv> {
  return cors({
    origin: allowed === '*' ? '*' : (origin) => (isAllowed(origin, allowed) ? origin : null),
    allowMethods: ['GET', 'POST', 'DELETE'],
    exposeHeaders: [
      ...['X-Request-Id', 'Request-Id', 'Retry-After', 'X-Skein-Warning', 'X-Skein-Prompt-Parted'],
      UNKNOWN_FIELDS_HEADER,
    ],
    maxAge: 600,
  });
}

/**
 * Refuses requests that a page of another origin makes its reader's browser send, before any work. It is not enough
 * that the page cannot read the answer: a form, or a body of text, is sent without asking, and would be computed.
 * Programs, which name no origin, pass.
 */
export function refuseOtherPages(allowed: AllowedOrigins): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    if (allowed === '*') return next();
    const origin = c.req.header('origin');
    const site = c.req.header('sec-fetch-site');
    if (origin === undefined) {
      // Browsers name no origin where a page shows a picture, or its reader follows a link.
      const isElsewhere = site === 'cross-site' || site === 'same-site';
      if (isElsewhere && !isVisit(c.req.method, c.req.header()))
        throw originNotAllowed('another origin', c.req.header('host'));
    } else if (c.req.method !== 'OPTIONS' && site !== 'same-origin') {
      // crossOrigin answers the browser's question whether it may ask.
      if (!isOwn(origin, c.req.header('host')) && !isAllowed(origin, allowed)) {
        throw originNotAllowed(origin, c.req.header('host'));
      }
    }
    await next();
  };
}

/** True where a reader opens a page of this server, from a link elsewhere. */
function isVisit(method: string, headers: Record<string, string>): boolean {
  return (
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
  );
}

/**
 * True for the server's own origin. Schemes are not compared: behind a proxy that speaks HTTPS the server does not know
 * its own.
 */
function isOwn(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const { protocol, host: ofPage } = new URL(origin);
  // The host is parsed as a URL of the page's scheme, which drops the scheme's default port.
  const own = `${protocol}//${host}`;
  return ofPage !== '' && URL.canParse(own) && new URL(own).host === ofPage;
}

function isAllowed(origin: string, allowed: readonly string[]): boolean {
  if (allowed.includes(origin)) return true;
  if (!allowed.includes(LOOPBACK_ORIGINS) || !URL.canParse(origin)) return false;
  if (APP_SCHEMES.test(origin)) return true;
  const { protocol, hostname, origin: parsed } = new URL(origin);
  return /^https?:$/.test(protocol) && parsed === origin && isLoopbackName(hostname);
}

function originNotAllowed(origin: string, host = 'no name'): ApiError {
  const message =
    `Web pages of ${origin} may not use this server, which was asked as ${host}; --cors-origin names those that may, ` +
    'and a proxy in front of it should hand on the Host as it came.';
  return new ApiError(403, message, { type: 'permission_error', code: 'origin_not_allowed' });
}
