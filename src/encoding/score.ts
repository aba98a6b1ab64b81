import { InvalidRequestError } from '../errors/request-errors.js';
import { encode, type OnAccepted, truncation } from './embed.js';
import { noInstruction } from './encoder-codec.js';
import type { EncoderModel } from './encoder-model.js';
import { wrongTask } from './wrong-task.js';

/** Options of scoring documents. */
export interface ScoreOptions {
  /** Number of tokens to which pairs are cut, as in EmbedOptions; the longer text is cut first. */
  truncatePromptTokens?: number | undefined;
  /**
   * What a reranker is to look for, such as "Find the law that applies", for models whose chat template has a place for it, as
   * Qwen3-Reranker's. Default: the model's own, or its template's.
   */
  instruction?: string | undefined;
  /** Signal whose abort ends the request. */
  signal?: AbortSignal | undefined;
}

export interface Scores {
  scores: number[];
  promptTokens: number;
}

/** Names of the fields that hold the texts of a pair, for errors. */
export interface PairNames {
  param: string;
  /** Name of the pair at an index. */
  pair: (index: number) => string;
}

/**
 * Computes one score for each pair: a cross-encoder's own, or for a model that embeds the cosine of the two embeddings.
 * @throws ContextLengthError; as EncoderHost.encode
 */
export async function scorePairs(
  model: EncoderModel,
  pairs: readonly (readonly [string, string])[],
  options: ScoreOptions,
  names: PairNames,
  onAccepted: OnAccepted = () => {},
): Promise<Scores> {
  const { maxSeqLen, head, codec, engine } = model;
  if (head.kind === 'classification') throw new InvalidRequestError(wrongTask(head), 'model');
  const { signal, truncatePromptTokens, instruction } = options;
  const limit = { maxSeqLen, truncateTo: truncation(truncatePromptTokens, maxSeqLen), signal };
  if (head.kind === 'score') {
    const sequences = await codec.pairs(pairs, { ...limit, instruction }, names.param, names.pair);
    const { rows, promptTokens } = await encode(engine, sequences, options, onAccepted);
    const activate = head.activation === 'sigmoid' ? (x: number) => 1 / (1 + Math.exp(-x)) : (x: number) => x;
    return { scores: rows.map((row) => activate(scoreOf(row))), promptTokens };
  }
  if (instruction !== undefined) throw new InvalidRequestError(noInstruction(), 'instruction');
  // Each text is embedded once, however many pairs it is in.
  const distinct = [...new Set(pairs.flat())];
  const nameOf = (i: number) => names.pair(pairs.findIndex((pair) => pair.includes(distinct[i]!)));
  const sequences = await codec.single(distinct, limit, names.param, (i) => `a text of ${nameOf(i)}`);
  const { rows, promptTokens } = await encode(engine, sequences, options, onAccepted);
  const rowOf = new Map(distinct.map((text, i) => [text, rows[i]!]));
  return { scores: pairs.map(([a, b]) => cosine(rowOf.get(a)!, rowOf.get(b)!)), promptTokens };
}

/** A cross-encoder's score, before its activation: two values are the logits of the tokens for yes and for no. */
export function scoreOf(row: Float32Array): number {
  return row[0]! - (row[1] ?? 0);
}

/** Cosine of two embeddings, in double precision; 0 where one is all zeros. */
function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, squaresA, squaresB] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    squaresA += a[i]! * a[i]!;
    squaresB += b[i]! * b[i]!;
  }
  const lengths = Math.sqrt(squaresA) * Math.sqrt(squaresB);
  return lengths === 0 ? 0 : dot / lengths;
}

/** Indices of scores by size, the greatest first; equal ones keep their order. */
export function ranking(scores: readonly number[], top = scores.length): number[] {
  return scores
    .map((_, index) => index)
    .sort((a, b) => scores[b]! - scores[a]! || a - b)
    .slice(0, top);
}
