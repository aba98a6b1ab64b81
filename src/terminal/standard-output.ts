import { asSentence } from '../../base/sentences.js';

const gone = new AbortController();
let problem: string | null = null;

const WRITE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full.',
  EDQUOT: 'the quota of disk space is used up.',
};

/**
 * Hears what goes wrong with stdout, which would end the process with a stack. That its reader has gone (`| head`) is
 * nothing wrong: what is still written is dropped, and who writes for it alone may end.
 */
export function watchStandardOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') {
      problem ??= `stdout cannot be written: ${WRITE_PROBLEMS[error.code ?? ''] ?? asSentence(error.message)}`;
    }
    gone.abort(new Error(problem ?? 'Whoever read the output has gone.'));
  });
  // Where stderr is gone there is nobody to tell.
  process.stderr.on('error', () => {});
}

/** Aborted where stdout takes nothing more. */
export function readerGone(): AbortSignal {
  return gone.signal;
}

/**
 * Resolves when all that was written to stdout is out: with null, or with why not all of it has arrived, where that was no
 * wish of its reader.
 */
export async function outputProblem(): Promise<string | null> {
  if (!process.stdout.destroyed)
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
  // The error is told behind the callback of the write.
  await new Promise((resolve) => setImmediate(resolve));
  return problem;
}
