/** Forms of the log's lines. */
export type LogFormat = 'json' | 'text';

/** Log for the server's own events. */
export interface ServerLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What is logged, by the names of the protocol's logging extension. */
export interface LogLevels {
  log_info: boolean;
  log_warning: boolean;
  log_error: boolean;
  /** 0: nothing beyond that; 1: also requests that machines make every few seconds. */
  log_verbose_level: number;
}

/** Says what is logged, and changes it while the server runs. */
export interface LogControl {
  readonly levels: Readonly<LogLevels>;
  /** Path of the log's file; '': it has none. */
  readonly path: string;
  readonly format: LogFormat;
  change(levels: Partial<LogLevels>): void;
}
