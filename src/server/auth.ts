import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { ApiError } from './openai/errors.js';

const digest = (text: string) => createHash('sha256').update(text).digest();

/**
 * Asks for `Authorization: Bearer KEY` or `X-Api-Key: KEY`. Without a key everyone is welcome.
 * @param isOpen the paths that need none, such as those that orchestrators probe.
 */
export function requireApiKey(apiKey: string | null, isOpen: (path: string) => boolean): MiddlewareHandler {
  // Digests have one length, so that the comparison takes the same time whatever was sent.
  const expected = apiKey === null ? null : digest(apiKey);
  return async (c, next) => {
    if (expected !== null && !isOpen(c.req.path)) {
      const bearer = /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '')?.[1];
      const given = bearer ?? c.req.header('x-api-key');
      if (given === undefined || !timingSafeEqual(digest(given.trim()), expected)) {
        const message =
          given === undefined
            ? 'This server needs an API key: send it as "Authorization: Bearer KEY" or "X-Api-Key: KEY".'
            : 'The API key is not the one that this server was started with.';
        throw new ApiError(401, message, {
          type: 'authentication_error',
          code: 'invalid_api_key',
          headers: { 'www-authenticate': 'Bearer' },
        });
      }
    }
    await next();
  };
}
