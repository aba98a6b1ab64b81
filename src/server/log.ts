import { pino } from 'pino';
import type { ServerLog } from './server-log.js';

/** Makes the server's log: one JSON object a line, on stderr, since stdout is for the command's own output. */
export function createLog(level: string): ServerLog {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination(2));
}
