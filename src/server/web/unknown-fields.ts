import type { Context } from 'hono';
import { UNKNOWN_FIELDS_HEADER } from '../../schemas/unknown-fields.js';
import type { AppEnv } from './app-env.js';

/** Tells a client in a header, of an error too, which fields of its body nobody knows. */
export async function tellUnknownFields(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  const unknown = c.get('unknownFields');
  if (unknown !== undefined) c.res.headers.set(UNKNOWN_FIELDS_HEADER, unknown.text);
}
