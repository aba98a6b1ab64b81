import { asSentence } from '../../base/sentences.js';

const gone = new AbortController();
let problem: string | null = null;

const WRITE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full.',
  EDQUOT: 'the quota of disk space is used up.',
};

/**
 * Handles errors of stdout, which would end the process with a stack. A reader that has gone (`| head`) is no error:
 * further text is dropped, and code that writes only for this reader may end.
 */
export function watchStandardOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') {
      problem ??= `stdout cannot be written: ${WRITE_PROBLEMS[error.code ?? ''] ?? asSentence(error.message)}`;
    }
    gone.abort(new Error(problem ?? 'The process that read the output has gone.'));
  });
  // Without stderr there is no place to report to.
  process.stderr.on('error', () => {});
}

/** Signal aborted when stdout takes no more text. */
export function readerGone(): AbortSignal {
  return gone.signal;
}

/**
 * Waits until all text written to stdout is out. Resolves with null, or with why text was lost, unless its reader
 * wanted no more.
 */
export async function outputProblem(): Promise<string | null> {
  if (!process.stdout.destroyed)
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  // The error is reported after the callback of the write.
  await new Promise((resolve) => setImmediate(resolve));
  return problem;
}
