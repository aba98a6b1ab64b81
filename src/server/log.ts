import { pino } from 'pino';
import type { ServerLog } from './server-log.js';

/** Makes the server's log: one JSON object a line, on stderr, since stdout is for the command's own output. */
export function createLog(level: string): ServerLog {
  const timestamp = pino.stdTimeFunctions.isoTime;
  // Messages here say their causes themselves; the usual serializer would add them once more.
  const serializers = { err: pino.stdSerializers.errWithCause };
  return pino({ level, base: null, timestamp, serializers }, pino.destination(2));
}
