import { randomUUID } from 'node:crypto';
import type { Context } from 'hono';
import type { AppEnv } from './app-env.js';

/** The client's X-Request-Id if it is valid, else a new id. */
export function requestIdOf(given: string | string[] | undefined): string {
  const isValid = typeof given === 'string' && /^[\x21-\x7e]{1,128}$/.test(given);
  return isValid ? given : `req-${randomUUID()}`;
}

/** Sets the request's id, and returns it with every answer. */
export async function requestIds(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  const id = requestIdOf(c.req.header('x-request-id'));
  c.set('requestId', id);
  c.header('x-request-id', id);
  await next();
  c.res.headers.set('x-request-id', id);
}
