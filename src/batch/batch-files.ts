import { existsSync, realpathSync } from 'node:fs';
import { isObject } from '../../base/option-values.js';
import { SkeinError } from '../../base/skein-error.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { type BatchUsage, NO_USAGE, plus, usageOf } from './batch-usage.js';
import { splitLines } from './split-lines.js';

/** An error for files of a batch that do not fit together, or cannot be written. */
export class BatchFileError extends SkeinError {
  override name = 'BatchFileError';
  override readonly code = 'SKEIN_BATCH_FILE';
}

/** Answers of an earlier run in a file. */
export interface Answered {
  customIds: Set<string>;
  /** Number of bytes of the file's whole lines. */
  bytes: number;
  /** Number of lines with an answer of the server: other lines are of requests that were not asked. */
  answers: number;
  /** What all of them took. */
  usage: BatchUsage;
}

/** No answers. */
export function nothingAnswered(): Answered {
  return { customIds: new Set(), bytes: 0, answers: 0, usage: NO_USAGE };
}

/**
 * Reads the answers of an earlier run; a torn last line does not count.
 * @throws BatchFileError for a file with anything else in it, which is not touched.
 */
export async function readAnswered(path: string): Promise<Answered> {
  if (!existsSync(path)) return nothingAnswered();
  try {
    return await answeredIn(
      path,
      (line) =>
        new BatchFileError(
          `${path} has a line ${line} that is no answer of a batch; name another file, or take --restart to write it again.`,
        ),
    );
  } catch (error) {
    if (error instanceof BatchFileError) throw error;
    throw new BatchFileError(`${path} cannot be read: ${fileProblem(error)}`);
  }
}

/**
 * The answers in a file; a torn last line does not count.
 * @param foreign returns the error of a line that is no answer; the first is 1
 */
export async function answeredIn(
  source: string | AsyncIterable<Buffer>,
  foreign: (line: number) => Error,
): Promise<Answered> {
  const answered = nothingAnswered();
  for await (const { number, bytes, end, isWhole } of splitLines(source, Number.POSITIVE_INFINITY)) {
    if (!isWhole) break;
    const answer = answerOf(bytes!);
    if (answer === null) throw foreign(number);
    if (answer.customId !== null) answered.customIds.add(answer.customId);
    answered.bytes = end;
    if (answer.isAnswer) answered.answers++;
    answered.usage = plus(answered.usage, answer.usage);
  }
  return answered;
}

/**
 * A line's answer; null: the line is not one of a batch. A custom_id of null answers an input line without
 * one.
 */
function answerOf(bytes: Buffer): { customId: string | null; isAnswer: boolean; usage: BatchUsage } | null {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    if (!isObject(value) || typeof value.id !== 'string' || !value.id.startsWith('batch_req_')) return null;
    const body = isObject(value.response) ? value.response.body : null;
    return {
      customId: typeof value.custom_id === 'string' ? value.custom_id : null,
      isAnswer: isObject(value.response),
      usage: usageOf(body),
    };
  } catch {
    return null;
  }
}

/** @throws UsageError where two of the files are one. */
export function checkDistinctFiles(files: Readonly<Record<string, string>>): void {
  const seen = new Map<string, string>();
  for (const [what, path] of Object.entries(files)) {
    const real = existsSync(path) ? realpathSync(path) : path;
    const other = seen.get(real);
    if (other !== undefined)
      throw new UsageError(`${path} is given as ${other} and as ${what}; each needs a file of its own.`);
    seen.set(real, what);
  }
}
