import { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../../serving/infer-failure.js';

/** The trace settings that this server reports: no tracing, in the form that clients of Triton read. */
export const TRACE_SETTINGS = {
  trace_level: ['OFF'],
  trace_rate: '1000',
  trace_count: '-1',
  log_frequency: '0',
  trace_file: '',
  trace_mode: 'triton',
};

/**
 * Checks settings that a client sends against the current ones: an unchanged one, or null, which asks for the
 * default, is accepted; any other is refused by name, since it would have no effect. @param body what was
 * sent, whatever it is
 * @throws InferError
 */
export function checkSettings(current: Readonly<Record<string, unknown>>, body: unknown, why: string): void {
  for (const [name, value] of Object.entries(knownSettings(body, Object.keys(current)))) {
    const own = current[name];
    if (value === null || JSON.stringify(value) === JSON.stringify(own)) continue;
    if (typeof value !== typeof own && typeof own === 'boolean') {
      throw malformed(`'${name}' is to be true or false`);
    }
    throw new InferError(`'${name}' cannot be changed: ${why}`, 'unsupported');
  }
}

/** Fields of an object, of these names alone: a misspelt one would change nothing without a word. @throws InferError for another one */
export function knownSettings(body: unknown, names: readonly string[]): Readonly<Record<string, unknown>> {
  const given = fieldsOf(body);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown === undefined) return given;
  throw malformed(`'${unknown.slice(0, 64)}' is no setting; there are ${names.join(', ')}`);
}

/** Fields of an object; anything else has none, as Triton takes it. */
function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Readonly<Record<string, unknown>>)
    : {};
}
