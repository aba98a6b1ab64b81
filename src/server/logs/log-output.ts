import { writeSync } from 'node:fs';
import { type DestinationStream, destination, multistream, stdTimeFunctions } from 'pino';
import { writeProblem } from '../../../base/system-problem.js';
import type { LogFormat } from '../web/server-log.js';
import { textLines } from './text-lines.js';

const STDERR = 2;
/** Bytes of lines that wait for the reader of stderr; further ones are dropped, and counted. */
const MAX_WAITING_BYTES = 4 * 2 ** 20;

/** What writes to stderr in this process. */
const ofTerminal = new Set<ReturnType<typeof destination>>();

/**
 * Drops what waits for the reader of stderr: the process ends, and the reader has stopped. Nothing may be
 * logged after it.
 */
export function abandonLogs(): void {
  for (const stream of ofTerminal) stream.destroy();
}

/** Writes to the terminal after the pending lines of the log: a half-written line is not torn. */
export function tellTerminal(text: string): void {
  const [stream] = ofTerminal;
  if (stream === undefined) process.stderr.write(`skein: ${text}\n`);
  else stream.write(`skein: ${text}\n`);
}

/** Milliseconds between two complaints that the file cannot be written. */
const COMPLAINT_MS = 60_000;

/**
 * Where log lines go: stderr, or a file, and then warnings and errors to stderr too, so that they are seen.
 *
 *   log file   <- every line            reopened by its name when it was renamed; emptied in place (copytruncate) it goes on as well
 *   stderr     <- warnings and errors; without a file every line
 */
export class LogOutput {
  /** Path of the file; '': there is none. */
  readonly path: string;
  readonly format: LogFormat;
  readonly stream: DestinationStream;
  readonly #file: ReturnType<typeof destination> | null = null;

  /** @param path of the file; undefined: stderr alone @throws the system's error where it cannot be opened */
  constructor(path?: string, format: LogFormat = 'json') {
    this.path = path ?? '';
    this.format = format;
    const formatted = (stream: DestinationStream) => (format === 'json' ? stream : textLines(stream));
    const terminal = toTerminal(formatted);
    if (path === undefined) {
      this.stream = terminal;
      return;
    }
    const file = destination({ dest: path, append: true, sync: true });
    let lastMs = Number.NEGATIVE_INFINITY;
    file.on('error', (error: unknown) => {
      const nowMs = performance.now();
      if (nowMs - lastMs < COMPLAINT_MS) return;
      lastMs = nowMs;
      process.stderr.write(`skein: the log file ${path} cannot be written: ${writeProblem(error)}\n`);
    });
    this.#file = file;
    const streams = [
      { level: 'trace', stream: formatted(file) },
      { level: 'warn', stream: terminal },
    ] as const;
    this.stream = multistream([...streams]);
  }

  /** Reopens the file by its name: log rotation has renamed it. */
  reopen(): void {
    this.#file?.reopen();
  }
}

function silence(stream: ReturnType<typeof destination>): void {
  for (const name of ['write', 'end', 'flush', 'flushSync'] as const) stream[name] = () => true;
}

/** False where each write to the file fails; one that is only busy takes them later. */
function takesWrites(fd: number): boolean {
  try {
    writeSync(fd, '');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN';
  }
}

/** A stream of lines to stderr, which reports the dropped ones as soon as stderr is read again. */
function toTerminal(formatted: (stream: DestinationStream) => DestinationStream): DestinationStream {
  const raw = destination({ dest: STDERR, sync: false, maxLength: MAX_WAITING_BYTES });
  ofTerminal.add(raw);
  // Of a terminal that was closed: the stream itself would try its last lines again for ever, and the process would never end.
  raw.on('error', () => silence(raw));
  const flushSync = raw.flushSync.bind(raw);
  raw.flushSync = () => {
    if (takesWrites(STDERR)) flushSync();
  };
  raw.on('close', () => ofTerminal.delete(raw));
  const stream = formatted(raw);
  let dropped = 0;
  raw.on('drop', () => {
    dropped++;
  });
  raw.on('drain', () => {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    stream.write(
      `{"level":40${stdTimeFunctions.isoTime()},"lines":${lines},"msg":"lines of the log were dropped: no process read them"}\n`,
    );
  });
  return stream;
}
