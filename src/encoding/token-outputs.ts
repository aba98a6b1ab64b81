import { setImmediate as nextTurn } from 'node:timers/promises';
import { givesTokens, type TokenOutput } from '../../callbacks/encoder-messages.js';
import { TOKEN_LAYERS } from '../../models/encoder-config.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { type EmbedOptions, encode, type OnAccepted, promptedSequences } from './embed.js';
import type { EncoderInput } from './encoder-codec.js';
import type { EncoderModel } from './encoder-model.js';
import { wrongTask } from './wrong-task.js';

/** Options of what a model gives of the tokens of texts. */
export type TokenOptions = Omit<EmbedOptions, 'dimensions' | 'normalize'>;

/** Weights of the tokens of a text, those above 0: the lexical weights of BGE-M3. */
export interface SparseEmbedding {
  /** Token ids, in ascending order. */
  indices: Int32Array;
  /** The weight of each. */
  values: Float32Array;
}

/** What is given of each text, and the number of tokens of all, special tokens included. */
export interface OfTokens<T> {
  embeddings: T[];
  promptTokens: number;
}

/** Called with the number of tokens of all texts before the engine has them; what it throws refuses the call. */
export type OnTokens = (promptTokens: number) => void;

interface Hooks {
  onTokens?: OnTokens;
  onAccepted?: OnAccepted;
}

/**
 * Computes the weight of each token of each text, the greatest where a token is there more than once; special tokens have none.
 * @throws InvalidRequestError; as EncoderHost.encode
 */
export async function embedSparse(
  model: EncoderModel,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  hooks: Hooks = {},
): Promise<OfTokens<SparseEmbedding>> {
  const { rows, tokens, promptTokens } = await tokenRows(model, inputs, options, 'weights', hooks);
  const { unweighted } = model.codec;
  const embeddings: SparseEmbedding[] = [];
  let values = 0;
  for (const [i, row] of rows.entries()) {
    embeddings.push(sparse(tokens[i]!, row, unweighted));
    values += row.length;
    if (values < VALUES_PER_TURN) continue;
    values = 0;
    await nextTurn();
  }
  return { embeddings, promptTokens };
}

/**
 * Computes the weight of each token of each text, in their order; special tokens at the ends of a text are left out.
 * @throws as embedSparse
 */
export async function weighTokens(
  model: EncoderModel,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  hooks: Hooks = {},
): Promise<OfTokens<Float32Array>> {
  const { rows, tokens, promptTokens } = await tokenRows(model, inputs, options, 'weights', hooks);
  const { unweighted } = model.codec;
  const embeddings = rows.map((row, i) => {
    const ids = tokens[i]!;
    const begin = Number(unweighted.has(ids[0]!));
    const end = ids.length - Number(ids.length > begin && unweighted.has(ids.at(-1)!));
    return row.subarray(begin, end);
  });
  return { embeddings, promptTokens };
}

/** Weights that are looked at between two turns of the event loop. */
const VALUES_PER_TURN = 32_768;

/**
 * Computes a vector of length 1 for each token of each text but the first, special tokens at its end included: the multi-vector
 * embeddings of BGE-M3, for late interaction. @throws as embedSparse
 */
export async function embedTokens(
  model: EncoderModel,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  hooks: Hooks = {},
): Promise<OfTokens<Float32Array[]>> {
  const { rows, promptTokens } = await tokenRows(model, inputs, options, 'vectors', hooks);
  const width = vectorWidth(model);
  const vectorsOf = (row: Float32Array) =>
    Array.from({ length: row.length / width }, (_, t) => row.subarray(t * width, (t + 1) * width));
  return { embeddings: rows.map(vectorsOf), promptTokens };
}

/** Number of values in the vector of a token; 0: the model has no such vectors. */
export function vectorWidth({ head }: Pick<EncoderModel, 'head'>): number {
  return (head.kind === 'embedding' ? head.tokens?.vectors : null) ?? 0;
}

const WORDS: Readonly<Record<TokenOutput, string>> = {
  weights: 'weights of tokens (sparse embeddings)',
  vectors: 'vectors of tokens (multi-vector embeddings)',
};

async function tokenRows(
  model: EncoderModel,
  inputs: readonly EncoderInput[],
  options: TokenOptions,
  output: TokenOutput,
  { onTokens, onAccepted = () => {} }: Hooks,
) {
  const { head, engine } = model;
  if (head.kind !== 'embedding') throw new InvalidRequestError(wrongTask(head), 'model');
  if (!givesTokens(head, output)) {
    const file = `${TOKEN_LAYERS[output]}.safetensors`;
    throw new InvalidRequestError(
      `This model gives no ${WORDS[output]}: it was built without a file ${file}, to which ${TOKEN_LAYERS[output]}.pt of a published model is converted.`,
      'model',
    );
  }
  const sequences = await promptedSequences(model, head, inputs, options);
  const tokens = sequences.map(({ tokenIds }) => tokenIds);
  onTokens?.(tokens.reduce((sum, { length }) => sum + length, 0));
  const asked = sequences.map((sequence) => ({ ...sequence, output }));
  return { tokens, ...(await encode(engine, asked, options, onAccepted)) };
}

function sparse(tokens: Int32Array, weights: Float32Array, unweighted: ReadonlySet<number>): SparseEmbedding {
  const greatest = new Map<number, number>();
  for (const [i, token] of tokens.entries()) {
    const weight = weights[i]!;
    if (weight > (greatest.get(token) ?? 0) && !unweighted.has(token)) greatest.set(token, weight);
  }
  const indices = Int32Array.from(greatest.keys()).sort();
  return { indices, values: Float32Array.from(indices, (token) => greatest.get(token)!) };
}
