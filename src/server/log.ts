import { pino } from 'pino';
import type { ServerLog } from './server-log.js';

/** The server's log: one JSON object a line, on stderr, so that stdout stays for what the command says. */
export function createLog(level: string): ServerLog {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
