import { type DestinationStream, destination, multistream } from 'pino';
import { writeProblem } from '../../base/system-problem.js';
import { type LogFormat, textLines } from './text-lines.js';

/** Milliseconds between two complaints that the file cannot be written. */
const COMPLAINT_MS = 60_000;

/**
 * Where log lines go: stderr, or a file, and then warnings and errors to stderr too, since somebody has to see them.
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
    const terminal = formatted(destination(2));
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

  /** Opens the file anew, by its name: whoever rotates it has renamed it. */
  reopen(): void {
    this.#file?.reopen();
  }
}
