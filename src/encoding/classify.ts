import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import { type ClassificationHead, type EncoderHead, UNNAMED_LABEL } from '../../models/encoder-config.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { checkTokens, type EmbedOptions, encode, type OnAccepted, truncation } from './embed.js';
import type { EncoderInput } from './encoder-codec.js';
import type { EncoderModel } from './encoder-model.js';
import { scoreOf } from './score.js';
import { wrongTask } from './wrong-task.js';

/** A text, token ids that are taken as they are, or two texts that are classified together. */
export type ClassifiedInput = EncoderInput | readonly [string, string];

/** Options of classifying texts. */
export interface ClassifyOptions
  extends Pick<EmbedOptions, 'truncatePromptTokens' | 'truncateSide' | 'onProgress' | 'signal'> {
  /** Gives the logits, without the model's softmax or sigmoid. Default: false. */
  rawScores?: boolean | undefined;
}

/** A label of a text, and its score. */
export interface LabelScore {
  label: string;
  score: number;
}

export interface Classified {
  /** Names of the labels. */
  labels: readonly string[];
  /** The logit of each label, for each input. */
  rows: Float32Array[];
  /** The scores of a row, in the order of the labels, made when they are asked for: thousands of rows take a while. */
  scoresOf: (row: Float32Array) => Float32Array;
  /** Number of tokens of all inputs, special tokens included. */
  promptTokens: number;
}

/** Names of the labels of a model that classifies, a cross-encoder being one with a single label; null: it does not. */
export function labelsOf(head: EncoderHead): readonly string[] | null {
  if (head.kind === 'classification') return head.labels;
  return head.kind === 'score' ? [head.label ?? UNNAMED_LABEL] : null;
}

/** Computes the score of each label for each input. @throws InvalidRequestError; as EncoderHost.encode */
export async function classify(
  model: EncoderModel,
  inputs: readonly ClassifiedInput[],
  options: ClassifyOptions,
  onAccepted: OnAccepted = () => {},
): Promise<Classified> {
  const { head, engine } = model;
  const labels = labelsOf(head);
  if (labels === null || head.kind === 'embedding') throw new InvalidRequestError(wrongTask(head), 'model');
  const sequences = await sequencesOf(model, inputs, options);
  const { rows: given, promptTokens } = await encode(engine, sequences, options, onAccepted);
  const activation = options.rawScores === true ? 'none' : head.activation;
  const rows = head.kind === 'score' ? given.map((row) => Float32Array.of(scoreOf(row))) : given;
  return { labels, rows, scoresOf: (row) => activated(row, activation), promptTokens };
}

/** Scores that are made between two turns of the event loop. */
const VALUES_PER_TURN = 32_768;

/** What is made of the scores of each input, in several turns of the event loop. */
export async function scoresInTurns<T>(
  { rows, scoresOf }: Pick<Classified, 'rows' | 'scoresOf'>,
  make: (scores: Float32Array) => T,
): Promise<T[]> {
  const made: T[] = [];
  let values = 0;
  for (const row of rows) {
    made.push(make(scoresOf(row)));
    values += row.length;
    if (values < VALUES_PER_TURN) continue;
    values = 0;
    await nextTurn();
  }
  return made;
}

async function sequencesOf(
  { codec, maxSeqLen, vocabSize }: EncoderModel,
  inputs: readonly ClassifiedInput[],
  { truncatePromptTokens, truncateSide: side, signal }: ClassifyOptions,
): Promise<EncoderSequence[]> {
  const limit = { maxSeqLen, truncateTo: truncation(truncatePromptTokens, maxSeqLen), side, signal };
  const name = (i: number) => (inputs.length === 1 ? 'the input' : `input ${i}`);
  const all = inputs.map((_, i) => i);
  const [pairs, singles] = [true, false].map((of) => all.filter((i) => isPair(inputs[i]!) === of)) as [
    number[],
    number[],
  ];
  const ofSingles = await codec.single(
    singles.map((i) => inputs[i] as EncoderInput),
    limit,
    'input',
    (i) => name(singles[i]!),
  );
  for (const [i, { tokenIds }] of ofSingles.entries()) checkTokens(tokenIds, name(singles[i]!), vocabSize);
  const ofPairs = await codec.pairs(
    pairs.map((i) => inputs[i] as [string, string]),
    limit,
    'input',
    (i) => name(pairs[i]!),
  );
  const sequences: EncoderSequence[] = [];
  for (const [k, i] of singles.entries()) sequences[i] = ofSingles[k]!;
  for (const [k, i] of pairs.entries()) sequences[i] = ofPairs[k]!;
  return sequences;
}

function isPair(input: ClassifiedInput): input is readonly [string, string] {
  return typeof input === 'object' && typeof input[0] === 'string';
}

/** What an activation makes of logits, computed in double precision. */
function activated(row: Float32Array, activation: ClassificationHead['activation']): Float32Array {
  if (activation === 'none') return row;
  const scores = new Float32Array(row.length);
  if (activation === 'sigmoid') {
    for (let i = 0; i < row.length; i++) scores[i] = 1 / (1 + Math.exp(-row[i]!));
    return scores;
  }
  const greatest = row[greatestOf(row)]!;
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += Math.exp(row[i]! - greatest);
  for (let i = 0; i < row.length; i++) scores[i] = Math.exp(row[i]! - greatest) / sum;
  return scores;
}

/** Index of the greatest score, the first among equals. */
export function greatestOf(scores: Float32Array): number {
  let best = 0;
  for (let i = 1; i < scores.length; i++) if (scores[i]! > scores[best]!) best = i;
  return best;
}

/** Indices of the labels by their scores, the greatest first; equal ones keep their order. */
export function bestLabels(scores: Float32Array): number[] {
  return Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]! || a - b);
}
