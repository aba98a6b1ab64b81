import { type BadLine, type BatchRequest, type LineRules, parseBatchLine } from '../../batch/batch-line.js';
import { SeenIds } from '../../batch/seen-ids.js';
import { type FileLine, splitLines } from '../../batch/split-lines.js';
import { checkedSize } from '../web/bodies/read-json.js';
import { ApiError } from '../web/errors.js';
import type { BatchFault } from './batch-object.js';

/** Most requests of a batch, as in OpenAI's API. */
const MAX_REQUESTS = 50_000;
/** Characters of the longest custom_id. */
export const MAX_ID_LENGTH = 256;
/** Faults reported for one input; after them it is not read further. */
const MAX_FAULTS = 20;

/** What a batch's input holds. */
export interface ValidatedInput {
  total: number;
  faults: BatchFault[];
}

/** Reads all lines of an input before any is asked. @throws the signal's reason; Error of the system. */
export async function validateInput(
  input: AsyncIterable<Buffer>,
  rules: LineRules,
  signal: AbortSignal,
): Promise<ValidatedInput> {
  const seen = new SeenIds();
  const faults: BatchFault[] = [];
  let total = 0;
  for await (const line of splitLines(input, rules.maxLineBytes)) {
    signal.throwIfAborted();
    const read = await checkedLine(line, rules);
    // Empty lines cost time too.
    const isTooMany = total === MAX_REQUESTS || line.number > 2 * MAX_REQUESTS;
    if (isTooMany && (read !== null || line.number > 2 * MAX_REQUESTS)) {
      const message = `The file has more than ${MAX_REQUESTS} requests; make several batches of it.`;
      return {
        total,
        faults: [...faults, { code: 'too_many_requests', message, line: line.number, param: null }],
      };
    }
    if (read === null) continue;
    total++;
    const parsed = seen.checked(read, line.number);
    if ('message' in parsed) faults.push(faultOf(parsed));
    if (faults.length === MAX_FAULTS) return { total, faults };
  }
  if (total === 0)
    faults.push({ code: 'empty_file', message: 'The file has no requests.', line: null, param: null });
  return { total, faults };
}

/** A line as it is read, unless parsing it would delay others. */
async function checkedLine(line: FileLine, rules: LineRules): Promise<BatchRequest | BadLine | null> {
  try {
    if (line.bytes !== null) await checkedSize(line.bytes);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `Line ${line.number} is refused: ${error.message}`;
    return { line: line.number, customId: null, code: 'invalid_line', message };
  }
  return parseBatchLine(line, rules);
}

function faultOf({ code, message, line }: BadLine): BatchFault {
  return { code, message, line, param: null };
}
