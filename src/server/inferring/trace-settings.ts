import { MAX_INT32 } from '../../../base/int32.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../../serving/infer-failure.js';
import type { ModelRepository } from '../../serving/model-repository.js';
import type { TraceChange, TraceDecisions } from '../tracing/trace-settings.js';
import { checkSettings, knownSettings, TRACE_SETTINGS } from './settings.js';

/** The model whose trace settings are asked for; '': the server's. @throws InferError where it is not loaded */
export function tracedModel(repository: Pick<ModelRepository, 'loaded'>, name: string): string {
  const isKnown = name === '' || repository.loaded().some(({ config }) => config.name === name);
  if (!isKnown) throw malformed(`Request for unknown model : ${name}`);
  return name;
}

/** The protocol's trace extension, as GET /v2/trace/setting answers it. @param decisions null: there is no tracing @param model '': the server's */
export function traceSettings(decisions: TraceDecisions | null, model: string): object {
  if (decisions === null) return TRACE_SETTINGS;
  const { isOn, rate, count } = decisions.settings(model);
  return {
    trace_level: [isOn ? 'TIMESTAMPS' : 'OFF'],
    trace_rate: String(rate),
    trace_count: String(count),
    trace_mode: 'opentelemetry',
  };
}

/**
 * Changes which requests are traced. A setting that is null is given up for that of the level above; other names
 * are refused. All is checked before anything changes. @param body what was sent, whatever it is
 * @throws InferError for an invalid value
 */
export function changeTraceSettings(decisions: TraceDecisions | null, model: string, body: unknown): object {
  if (decisions === null) {
    checkSettings(
      TRACE_SETTINGS,
      body,
      'this server records no traces; --trace-endpoint says where to send them',
    );
    return TRACE_SETTINGS;
  }
  const { trace_level, trace_rate, trace_count, trace_file, log_frequency, trace_mode } = knownSettings(
    body,
    Object.keys(TRACE_SETTINGS),
  );
  if (trace_file != null) {
    throw new InferError('trace file location can not be updated through network protocol', 'unsupported');
  }
  if (log_frequency != null) {
    throw new InferError(
      "'log_frequency' cannot be changed: traces are sent away, and in no file",
      'unsupported',
    );
  }
  if (trace_mode != null && trace_mode !== 'opentelemetry') {
    throw new InferError("'trace_mode' cannot be changed: traces are OpenTelemetry's", 'unsupported');
  }
  const changes: TraceChange = {
    isOn: levelOf(trace_level),
    rate: numberOf('trace_rate', trace_rate, 0),
    count: numberOf('trace_count', trace_count, -1),
  };
  try {
    decisions.change(model, changes);
  } catch (error) {
    throw new InferError((error as Error).message, 'unavailable');
  }
  return traceSettings(decisions, model);
}

function levelOf(value: unknown): boolean | null | undefined {
  if (value === undefined || value === null) return value;
  if (!Array.isArray(value)) throw malformed("'trace_level' is to be a list of levels");
  if (value.length > 1 && value.includes('OFF')) {
    throw malformed("Expect only one trace level 'OFF' is specified");
  }
  if (value.includes('TENSORS')) {
    throw new InferError("'trace_level' cannot be TENSORS: traces hold no data of requests", 'unsupported');
  }
  const wrong = value.find((level) => level !== 'OFF' && level !== 'TIMESTAMPS');
  if (wrong !== undefined) throw malformed("a level of 'trace_level' is to be OFF or TIMESTAMPS");
  return value.length === 0 ? undefined : value[0] === 'TIMESTAMPS';
}

/** A number in a text, as the protocol has them. */
function numberOf(name: string, value: unknown, least: number): number | null | undefined {
  if (value === undefined || value === null) return value;
  if (typeof value !== 'string') throw malformed(`'${name}' is to be a number in a text`);
  const shown = value.slice(0, 30);
  if (!/^-?\d{1,15}$/.test(value)) throw malformed(`Unable to parse '${name}', got: ${shown}`);
  const number = Number(value);
  if (number < least) throw malformed(`Unable to parse '${name}'. Expecting value >= ${least}, got:${shown}`);
  if (number > MAX_INT32) {
    throw malformed(
      `Unable to parse '${name}', value is out of range [ ${least}, ${MAX_INT32} ], got: ${shown}`,
    );
  }
  return number;
}
