import { input, type NamedText, says } from '../../base/named-text.js';
import { counted } from '../../base/sentences.js';
import {
  FINISH_END_ID,
  FINISH_LENGTH,
  FINISH_NOT_FINISHED,
  FINISH_STOP_WORDS,
} from '../../callbacks/response-batch.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { endsWithStopWord } from '../../callbacks/stop-words.js';
import { MAX_SEQUENCES } from '../../callbacks/token-request.js';
import type { Tensor } from '../../callbacks/types.js';
import type { KnownOutput, RequestSpec } from '../sequences/request-spec.js';

const FIELD = 'known_output_ids';
/** Fills a row after its last token. */
const PADDING = -1;
/** Number of places that a row may always have, whatever the request asks for. */
const MAX_PADDED = 4096;
const NOTHING: KnownOutput = { tokens: new Int32Array(0), finishReason: FINISH_NOT_FINISHED };

/** Limits of known tokens, and the conditions that end a sequence. */
export interface KnownOutputLimits
  extends Pick<RequestSpec, 'maxNewTokens' | 'numSequences' | 'endId' | 'stopWords'> {
  minLength: number;
  vocabSize: number;
}

/**
 * Reads the tokens that a request's sequences have generated before, elsewhere, an entry for each row; null if no row has any.
 * Row i of the tensor [s, n] is of sequence i, and its tokens end with -1 or with the row:
 *
 *   request with 4 sequences, end_id 2
 *     [[ 5,  7,  9, 4 ],     sequence 0 goes on after 5 7 9 4
 *      [ 5,  8,  2, -1],     sequence 1 has ended after 5 8, by end_id
 *      [-1, -1, -1, -1]]     sequence 2 starts again, and so does sequence 3, which has no row
 *
 * Tokens are not checked against stop conditions except at their end: they were checked when they were generated. Takes time in
 * proportion to the tensor and the stop words. @throws ParameterError
 */
export function readKnownOutputs(
  { [FIELD]: tensor }: Record<string, Tensor>,
  limits: KnownOutputLimits,
): readonly KnownOutput[] | null {
  if (tensor === undefined) return null;
  const [numRows, width] = tensor.shape as [number, number];
  const { numSequences } = limits;
  // Rows of no places cost the client nothing, so they are counted whatever the request asks for.
  if (numRows > Math.min(numSequences, MAX_SEQUENCES)) {
    throw refused(
      `has ${numRows} rows; the request generates ${counted(numSequences, 'sequence')} in all, and each has one row at most`,
    );
  }
  const most = Math.max(limits.maxNewTokens, MAX_PADDED);
  if (width > most) {
    throw refused(
      says`has rows of ${width} places, of which no more than ${input('request_output_len')} = ${limits.maxNewTokens} can be tokens; at most ${most} are taken`,
    );
  }
  const data = tensor.data as Int32Array;
  const known = Array.from({ length: numRows }, (_, row) =>
    readRow(data.subarray(row * width, (row + 1) * width), row, limits),
  );
  return known.every((output) => output === NOTHING) ? null : known;
}

function readRow(values: Int32Array, row: number, limits: KnownOutputLimits): KnownOutput {
  const padding = values.indexOf(PADDING);
  const tokens = padding < 0 ? values : values.subarray(0, padding);
  checkValues(values, tokens.length, row, limits.vocabSize);
  const { length } = tokens;
  if (length === 0) return NOTHING;
  const { maxNewTokens, endId } = limits;
  if (length > maxNewTokens) {
    throw refused(
      says`has ${length} tokens in row ${row}; ${input('request_output_len')} is ${maxNewTokens}, and they count in it`,
    );
  }
  const end = endId < 0 ? -1 : tokens.indexOf(endId);
  if (end < 0) return { tokens: tokens.slice(), finishReason: reasonToEnd(tokens, limits) };
  if (end === length - 1) return { tokens: tokens.slice(0, end), finishReason: FINISH_END_ID };
  throw refused(
    says`goes on after ${input('end_id')} = ${endId} at [${row}, ${end}]; with ${input('end_id')} a sequence has ended`,
  );
}

function checkValues(values: Int32Array, length: number, row: number, vocabSize: number): void {
  const wrong = values.findIndex((token, place) =>
    place < length ? token < 0 || token >= vocabSize : token !== PADDING,
  );
  if (wrong < 0) return;
  const expected =
    wrong < length
      ? `tokens are from 0 to ${vocabSize - 1}, and -1 after the last one of a row`
      : 'after the first -1 of a row there is nothing else';
  throw refused(`holds ${values[wrong]} at [${row}, ${wrong}]; ${expected}`);
}

/** Finish reason that the last of these tokens had where it was generated, as in GeneratedSequence.append. */
function reasonToEnd(tokens: Int32Array, { maxNewTokens, stopWords, minLength }: KnownOutputLimits) {
  const { length } = tokens;
  if (length >= minLength && endsWithStopWord(stopWords, tokens, 0, length)) return FINISH_STOP_WORDS;
  return length === maxNewTokens ? FINISH_LENGTH : FINISH_NOT_FINISHED;
}

function refused(what: NamedText): ParameterError {
  return new ParameterError(FIELD, says`${input(FIELD)} ${what}.`);
}
