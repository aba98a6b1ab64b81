import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { type Answered, BatchFileError } from './batch-files.js';
import { type LineRules, parseBatchLine } from './batch-line.js';
import { splitLines } from './split-lines.js';

/** Amount of work in a batch. */
export interface BatchPlan {
  /** Number of lines of the input that are not empty. */
  total: number;
  /** Number of requests without an answer so far. Lines that are no requests are not counted. */
  left: number;
  answered: Answered;
}

/**
 * Reads the input once before anything is loaded.
 * @throws UsageError where it cannot be read; BatchFileError where the output holds answers of another batch.
 */
export async function planBatch(
  { input, output }: { input: string; output: string },
  answered: Answered,
  rules: LineRules,
): Promise<BatchPlan> {
  const strange = new Set(answered.customIds);
  const plan = { total: 0, left: 0, answered };
  try {
    for await (const line of splitLines(input, rules.maxLineBytes)) {
      const parsed = parseBatchLine(line, rules);
      if (parsed === null) continue;
      plan.total++;
      if ('message' in parsed) continue;
      strange.delete(parsed.customId);
      if (!answered.customIds.has(parsed.customId)) plan.left++;
    }
  } catch (error) {
    throw new UsageError(`The batch ${input} cannot be read: ${fileProblem(error)}`);
  }
  for (const customId of strange) {
    throw new BatchFileError(
      `${output} has the answer to ${JSON.stringify(customId)}, which ${input} does not ask; name another file, or take --restart to write it again.`,
    );
  }
  return plan;
}
