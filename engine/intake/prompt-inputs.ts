import { createHash } from 'node:crypto';
import { firstNotFinite } from '../../base/finite-floats.js';
import { input, type NamedText, option, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';
import type { PictureRule } from '../../network/attention-mask.js';
import { PromptPositions } from '../sequences/prompt-positions.js';
import type { ImageSpan, PromptTable } from '../sequences/request-spec.js';
import { readImages } from './image-inputs.js';

/** Parts of a prompt. */
export interface PromptInputs {
  promptTokens: Int32Array;
  /** null: no token has an embedding of the request's own. */
  promptTable: PromptTable | null;
  /** Positions of the prompt's tokens; null: 0, 1, 2, ... */
  positions: PromptPositions | null;
}

export interface PromptLimits {
  vocabSize: number;
  /** Width of the rows that a prompt may bring. */
  promptRowWidth: number;
  /** RoPE turns by the grids of pictures. */
  turnsByGrid: boolean;
  /** What tokens of a picture attend to; absent: causal. */
  pictureRule?: PictureRule;
  maxSeqLen: number;
  /** True if a token attends to all tokens before it. */
  attendsToAll: boolean;
}

/**
 *   prompt_embedding_table  [n, width]   row i is the embedding of the id vocabSize + i in input_ids
 *   prompt_vocab_size       [1]          how many of its rows there are to be; all n where it is not given
 *   image_grids             [k, 3]       pictures: place of the first token, rows and columns. The table's rows are then those of their
 *                                        tokens, one after the other, whatever ids from vocabSize on stand there
 *   position_ids            [1, prompt]  position of each prompt token; what is generated counts on from the last
 */
export function readPromptInputs(
  inputs: Record<string, Tensor>,
  limits: PromptLimits,
  maxNewTokens: number,
): PromptInputs {
  const { vocabSize, promptRowWidth: width } = limits;
  const values = readTable(inputs, width);
  const rows = values === null ? 0 : values.length / width;
  const images = readImages(inputs, vocabSize, rows);
  const promptTokens = images?.tokens ?? readTokens(inputs, vocabSize, rows);
  const usesTable = values !== null && promptTokens.some((token) => token >= vocabSize);
  const spans = images?.spans ?? null;
  return {
    promptTokens,
    promptTable: usesTable
      ? {
          firstId: vocabSize,
          values,
          images: spans,
          ...(attendsBothWays(spans, limits) && { bothWays: true }),
        }
      : null,
    positions: readPositions(inputs, { spans, length: promptTokens.length, maxNewTokens }, limits),
  };
}

/** True if tokens of these pictures attend to what follows them. @throws ParameterError where they should, and cannot */
function attendsBothWays(
  spans: readonly ImageSpan[] | null,
  { pictureRule = 'causal', attendsToAll }: PromptLimits,
): boolean {
  if (spans === null || pictureRule === 'causal') return false;
  const refuse = (why: NamedText) =>
    new ParameterError('image_grids', says`${input('image_grids')} is refused: ${why}.`);
  if (pictureRule === 'unsupported')
    throw refuse('this executor does not attend both ways within a picture, as this model does');
  if (!attendsToAll)
    throw refuse(
      says`this model attends both ways within a picture, which an attention window (${option('maxAttentionWindow')}) does not keep whole`,
    );
  return true;
}

function readTable(inputs: Record<string, Tensor>, width: number): Float32Array | null {
  const { prompt_embedding_table: table, prompt_vocab_size: size } = inputs;
  const rows = table?.shape[0] ?? 0;
  const given = size?.data[0] as number | undefined;
  if (given !== undefined && (given < 0 || given > rows)) {
    const there = table
      ? says`${input('prompt_embedding_table')} has ${rows} rows`
      : says`there is no ${input('prompt_embedding_table')}`;
    throw new ParameterError(
      'prompt_vocab_size',
      says`${input('prompt_vocab_size')} is ${given}; ${there}, so it must be from 0 to ${rows}.`,
    );
  }
  const used = (given ?? rows) * width;
  if (!table || used === 0) return null;
  const values = (table.data as Float32Array).subarray(0, used);
  // The loop waits for it, and a large picture has 16 million values.
  const wrong = firstNotFinite(values);
  if (wrong < 0) return values;
  throw new ParameterError(
    'prompt_embedding_table',
    says`${input('prompt_embedding_table')} holds ${values[wrong]} in row ${Math.floor(wrong / width)}; finite numbers are expected.`,
  );
}

function readTokens(inputs: Record<string, Tensor>, vocabSize: number, ownIds: number): Int32Array {
  const tokens = inputs.input_ids!.data as Int32Array;
  if (tokens.length === 0) {
    throw new ParameterError('input_ids', says`${input('input_ids')} is empty; at least 1 token is needed.`);
  }
  const wrong = tokens.findIndex((token) => token < 0 || token >= vocabSize + ownIds);
  if (wrong < 0) return tokens;
  const own =
    ownIds === 0
      ? ''
      : says`, those of ${input('prompt_embedding_table')} from ${vocabSize} to ${vocabSize + ownIds - 1}`;
  throw new ParameterError(
    'input_ids',
    says`${input('input_ids')} holds ${tokens[wrong]} at place ${wrong}; tokens are from 0 to ${vocabSize - 1}${own}.`,
  );
}

interface PositionedPrompt {
  spans: readonly ImageSpan[] | null;
  length: number;
  maxNewTokens: number;
}

function readPositions(
  inputs: Record<string, Tensor>,
  { spans, length, maxNewTokens }: PositionedPrompt,
  { maxSeqLen, attendsToAll, turnsByGrid }: PromptLimits,
): PromptPositions | null {
  const ids = inputs.position_ids?.data as Int32Array | undefined;
  const refuse = (what: NamedText) =>
    new ParameterError('position_ids', says`${input('position_ids')} ${what}.`);
  if (spans !== null) {
    if (ids !== undefined)
      throw refuse(says`is given together with ${input('image_grids')}, which decide the positions`);
    return turnsByGrid ? PromptPositions.ofImages(spans, length) : null;
  }
  if (ids === undefined) return null;
  if (ids.length !== length) {
    throw refuse(`has ${ids.length} positions; the prompt has ${length} tokens, one for each is expected`);
  }
  if (ids.every((position, i) => position === i)) return null;
  if (!attendsToAll) {
    throw refuse(
      says`is refused: with an attention window (${option('maxAttentionWindow')}) a token counts as its place in the cache, so only 0, 1, 2, ... can be given`,
    );
  }
  const wrong = ids.findIndex((position) => position < 0 || position >= maxSeqLen);
  if (wrong >= 0) {
    throw refuse(`holds ${ids[wrong]} at place ${wrong}; positions are from 0 to ${maxSeqLen - 1}`);
  }
  const last = ids.at(-1)!;
  if (last + maxNewTokens < maxSeqLen) return PromptPositions.given(ids);
  throw refuse(
    says`ends with ${last}, and ${input('request_output_len')} is ${maxNewTokens}; that goes on to position ${last + maxNewTokens}, the last one is ${maxSeqLen - 1}`,
  );
}

/**
 * Salt under which a request's blocks are kept. Keys and values depend on embeddings and positions, so only requests that bring the same
 * of both, and give the same salt, may share blocks. Pictures need none: their ids say what their rows are, and with their grids decide
 * all positions.
 */
export function cacheSaltOf(salt: bigint, { promptTable, positions }: PromptInputs): bigint {
  if (promptTable?.images || (promptTable === null && positions === null)) return salt;
  const hash = createHash('sha256').update(`${salt} ${promptTable?.values.length ?? 0} `);
  for (const array of [promptTable?.values, positions?.time]) {
    if (array) hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }
  return hash.digest().readBigUInt64LE();
}
