import type { Context } from 'hono';
import { UNKNOWN_FIELDS_HEADER } from '../../schemas/unknown-fields.js';
import type { AppEnv } from './app-env.js';

/** Header of an answer that states what of the request had no effect, or was changed. */
const WARNING_HEADER = 'x-skein-warning';

/** Most characters of the header: clients and proxies refuse answers whose headers are long. */
const MAX_HEADER = 1024;

/**
 * Reports to the client and the log which part of a request has no effect or was changed, where the request
 * is served all the same.
 */
export type Warn = (text: string) => void;

/** Reports several warnings. */
export function warnOfAll(texts: readonly string[], warn: Warn): void {
  for (const text of texts) warn(text);
}

/** Warns that parts of a request of these types were left out, where there are any. */
export function warnOfTypes(
  parts: 'Tools' | 'Items' | 'Blocks',
  types: readonly (string | undefined)[],
  warn: Warn,
): void {
  if (types.length === 0) return;
  const names = [...new Set(types)].map((type) => `'${type}'`);
  warn(`${parts} of the types ${names.join(', ')} are not known here and were left out.`);
}

/** Notes a warning for the header of the answer. */
export function noteWarning(c: Context<AppEnv>, text: string): void {
  c.set('warnings', [...(c.get('warnings') ?? []), text]);
}

/** Sends the warnings of a request with its answer. */
export async function tellWarnings(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  const warnings = c.get('warnings');
  if (warnings !== undefined) c.res.headers.set(WARNING_HEADER, headerText(warnings.join(' ')));
}

/** A text as a header may have it: other characters than printable ASCII are escaped as in JSON. */
function headerText(text: string): string {
  const escaped = text.replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return escaped.length <= MAX_HEADER ? escaped : `${escaped.slice(0, MAX_HEADER - 3)}...`;
}

/** Lists the unknown fields of a client's body in a header, of an error too. */
export async function tellUnknownFields(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  const unknown = c.get('unknownFields');
  if (unknown !== undefined) c.res.headers.set(UNKNOWN_FIELDS_HEADER, unknown.text);
}
