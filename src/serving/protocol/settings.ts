import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { ModelRepository } from '../model-repository.js';
import { malformed } from './malformed.js';

/** What this server tells of tracing: it has none, in the form that clients of Triton read. */
const TRACE_SETTINGS = {
  trace_level: ['OFF'],
  trace_rate: '1000',
  trace_count: '-1',
  log_frequency: '0',
  trace_file: '',
  trace_mode: 'triton',
};

/** What this server tells of its log, in the form that clients of Triton read: --log-level decides. */
const LOG_SETTINGS = {
  log_file: '',
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: 'default',
};

/**
 * Holds settings that a client sends against those that there are: one that is as it is, or that is null, which asks for the default, is
 * taken; any other is refused by name, since nothing would come of it. @param body what was sent, whatever it is
 * @throws InferError
 */
function checkSettings(current: Readonly<Record<string, unknown>>, body: unknown, why: string): void {
  for (const [name, value] of Object.entries(fieldsOf(body))) {
    const own = Object.hasOwn(current, name) ? current[name] : undefined;
    if (own === undefined || value === null || JSON.stringify(value) === JSON.stringify(own)) continue;
    if (typeof value !== typeof own && typeof own === 'boolean') {
      throw malformed(`'${name}' is to be true or false`);
    }
    throw new InferError(`'${name}' cannot be changed: ${why}`, 'unsupported');
  }
}

/**
 * Settings of tracing, of a model or with '' of all of them. @param body what is to be set; undefined: nothing @throws InferError
 */
export function traceSettings(
  repository: ModelRepository,
  name: string,
  body: unknown,
): typeof TRACE_SETTINGS {
  const isKnown = name === '' || repository.loaded().some(({ config }) => config.name === name);
  if (!isKnown) throw malformed(`Request for unknown model : ${name}`);
  checkSettings(TRACE_SETTINGS, body, 'this server records no traces');
  return TRACE_SETTINGS;
}

/** Settings of the log. @param body what is to be set; undefined: nothing @throws InferError */
export function logSettings(body: unknown): typeof LOG_SETTINGS {
  checkSettings(LOG_SETTINGS, body, '--log-level and --access-log decide');
  return LOG_SETTINGS;
}

/** Fields of an object; anything else has none, as Triton takes it. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Readonly<Record<string, unknown>>)
    : {};
}

/** Extensions of the protocol that this server has. */
const EXTENSIONS = [
  'classification',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
];

/** What a server tells of itself. @param hasSharedMemory clients on this machine have leave to use it */
export function extensions(hasSharedMemory: boolean): readonly string[] {
  return hasSharedMemory ? [...EXTENSIONS, 'system_shared_memory'] : EXTENSIONS;
}
