import { type Logger, pino } from 'pino';
import type { LogControl, LogFormat, LogLevels, ServerLog } from '../web/server-log.js';
import { LogOutput } from './log-output.js';

/** Levels as --log-level names them, the most talkative first. */
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LEVELS)[number];

/** The server's log: one JSON object a line. What is logged may be changed while it runs. */
export class Log implements ServerLog, LogControl {
  readonly path: string;
  readonly format: LogFormat;
  readonly #lines: Logger;
  #levels: LogLevels;

  constructor(level: LogLevel, output = new LogOutput()) {
    this.path = output.path;
    this.format = output.format;
    this.#levels = levelsOf(level);
    const timestamp = pino.stdTimeFunctions.isoTime;
    // Messages here say their causes themselves; the usual serializer would add them once more.
    const serializers = { err: pino.stdSerializers.errWithCause };
    this.#lines = pino({ level: 'trace', base: null, timestamp, serializers }, output.stream);
  }

  get levels(): Readonly<LogLevels> {
    return this.#levels;
  }

  /** Logs from now on so. */
  change(levels: Partial<LogLevels>): void {
    this.#levels = { ...this.#levels, ...levels };
  }

  debug(fields: object, message: string): void {
    if (this.#levels.log_verbose_level > 0) this.#lines.debug(fields, message);
  }

  info(fields: object, message: string): void {
    if (this.#levels.log_info) this.#lines.info(fields, message);
  }

  warn(fields: object, message: string): void {
    if (this.#levels.log_warning) this.#lines.warn(fields, message);
  }

  error(fields: object, message: string): void {
    if (this.#levels.log_error) this.#lines.error(fields, message);
  }
}

function levelsOf(level: LogLevel): LogLevels {
  const isAtLeast = (other: LogLevel) => LEVELS.indexOf(level) <= LEVELS.indexOf(other);
  return {
    log_info: isAtLeast('info'),
    log_warning: isAtLeast('warn'),
    log_error: isAtLeast('error'),
    log_verbose_level: level === 'trace' ? 2 : level === 'debug' ? 1 : 0,
  };
}
