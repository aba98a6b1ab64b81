import { MAX_INT32 } from '../../../base/int32.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import { malformed } from '../../serving/infer-failure.js';
import type { LogControl, LogLevels } from '../web/server-log.js';
import { knownSettings } from './settings.js';

/** The protocol's logging extension, as GET /v2/logging answers it. */
export interface LogSettings extends LogLevels {
  /** '': the terminal. */
  log_file: string;
  log_format: 'default';
}

export function logSettings({ levels, path }: LogControl): LogSettings {
  return { log_file: path, ...levels, log_format: 'default' };
}

/**
 * Changes what is logged. Settings that are null stay, as with Triton; unknown names are refused. All is
 * checked before anything changes. @param body what was sent, whatever it is @throws InferError for an
 * invalid value
 */
export function changeLogSettings(log: LogControl, body: unknown): LogSettings {
  const given = knownSettings(body, Object.keys(logSettings(log)));
  const changes: Partial<LogLevels> = {};
  for (const name of ['log_info', 'log_warning', 'log_error'] as const) {
    const value = given[name] ?? undefined;
    if (value === undefined) continue;
    if (typeof value !== 'boolean') throw malformed(`'${name}' is to be true or false`);
    changes[name] = value;
  }
  const verbose = given.log_verbose_level ?? undefined;
  if (verbose !== undefined) {
    if (!Number.isInteger(verbose) || (verbose as number) < 0 || (verbose as number) > MAX_INT32) {
      throw malformed("'log_verbose_level' is to be a whole number from 0");
    }
    changes.log_verbose_level = verbose as number;
  }
  const { log_file: file, log_format: format } = given;
  if (file != null && file !== log.path) {
    throw new InferError('log file location can not be updated through network protocol', 'unsupported');
  }
  if (format != null && format !== 'default') {
    throw new InferError(
      `'log_format' cannot be changed: each line is ${log.format === 'json' ? 'a JSON object' : 'a text'}, with its time in ISO 8601`,
      'unsupported',
    );
  }
  log.change(changes);
  return logSettings(log);
}
