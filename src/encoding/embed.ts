import { field, says } from '../../base/named-text.js';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { EmbeddingHead } from '../../models/encoder-config.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import {
  type EmbeddingInput,
  isPicture,
  lookAtInputs,
  type PictureLoading,
  rowsOfInputs,
} from './embed-pictures.js';
import type { EncoderInput, TruncateSide } from './encoder-codec.js';
import type { EncoderModel, RowEngine } from './encoder-model.js';
import type { EncodedPicture } from './picture-encoder.js';
import { type PromptChoice, withPrompt } from './prompts.js';
import { wrongTask } from './wrong-task.js';

/** Options of embedding texts. */
export interface EmbedOptions extends PromptChoice {
  /** Number of values of each embedding, for Matryoshka models. Default: all. */
  dimensions?: number | undefined;
  /**
   * Number of tokens to which longer inputs are cut at their end; -1: the most that the model takes. Default: longer
   * inputs are refused.
   */
  truncatePromptTokens?: number | undefined;
  /**
   * Whether embeddings are brought to length 1. Default: as the model has them, and those that are cut by `dimensions` are. A model whose
   * embeddings have length 1 gives no others.
   */
  normalize?: boolean | undefined;
  /** Which side of a longer input is cut. Default: 'end'. */
  truncateSide?: TruncateSide | undefined;
  /** Called after each batch that had inputs of this call, with the number of embeddings that are done and of all. */
  onProgress?: ((done: number, all: number) => void) | undefined;
  /** Signal whose abort ends the request. */
  signal?: AbortSignal | undefined;
}

/** Called once with the number of tokens of all inputs, when they are valid; they go to the engine when it is done, unless it rejects. */
export type OnAccepted = (promptTokens: number) => void | Promise<void>;

export interface Embeddings {
  embeddings: Float32Array[];
  /** Number of tokens of all inputs, special tokens included. */
  promptTokens: number;
}

/** Computes one embedding for each input, a text or a picture. @throws InvalidRequestError; as lookAtInputs, EncoderHost.encode */
export async function embed(
  model: EncoderModel,
  inputs: readonly EmbeddingInput[],
  options: EmbedOptions,
  onAccepted: OnAccepted = () => {},
  loading: PictureLoading = {},
): Promise<Embeddings> {
  const { head, engine } = model;
  if (head.kind !== 'embedding') throw new InvalidRequestError(wrongTask(head), 'model');
  const { dimensions } = options;
  if (dimensions !== undefined) checkDimensions(dimensions, model);
  if (options.normalize === false && head.normalize) {
    throw new InvalidRequestError(
      says`${field('normalize')} is false, but this model's embeddings have length 1, and it gives no others.`,
      'normalize',
    );
  }
  const places = inputs.flatMap((input, i) => (isPicture(input) ? [] : [i]));
  const texts = places.map((place) => inputs[place] as EncoderInput);
  const name = (i: number) => nameOf(places[i]!, inputs.length);
  const sequences = await promptedSequences(model, head, texts, options, name);
  const pictures = await lookAtInputs(model, inputs.filter(isPicture), {
    ...loading,
    signal: options.signal,
  });
  const { rows, promptTokens } =
    pictures.length === 0
      ? await encode(engine, sequences, options, onAccepted)
      : await encodeBoth(engine, { inputs, sequences, pictures, salt: loading.salt }, options, onAccepted);
  const isCut = dimensions !== undefined && dimensions < model.outputWidth;
  const { normalize = isCut } = options;
  const cut = isCut ? rows.map((row) => row.subarray(0, dimensions)) : rows;
  return { embeddings: normalize && (isCut || !head.normalize) ? cut.map(unit) : cut, promptTokens };
}

/** What an input is called in errors. */
const nameOf = (place: number, count: number) => (count === 1 ? 'the input' : `input ${place}`);

/** The sequences of inputs, with the model's prompt in front of texts. @param name what to call input i in errors @throws InvalidRequestError */
export async function promptedSequences(
  { codec, maxSeqLen, vocabSize }: EncoderModel,
  head: EmbeddingHead,
  inputs: readonly EncoderInput[],
  options: Pick<EmbedOptions, 'truncatePromptTokens' | 'truncateSide' | 'signal' | keyof PromptChoice>,
  name = (i: number) => nameOf(i, inputs.length),
): Promise<EncoderSequence[]> {
  const truncateTo = truncation(options.truncatePromptTokens, maxSeqLen);
  const limit = { maxSeqLen, truncateTo, side: options.truncateSide, signal: options.signal };
  const sequences = await codec.single(withPrompt(inputs, head, options), limit, 'input', name);
  for (const [i, { tokenIds }] of sequences.entries()) checkTokens(tokenIds, name(i), vocabSize);
  return sequences;
}

/** Checks inputs given as token ids. */
export function checkTokens(tokenIds: Int32Array, name: string, vocabSize: number): void {
  const what = `${name[0]!.toUpperCase()}${name.slice(1)}`;
  if (tokenIds.length === 0) throw new InvalidRequestError(`${what} has no tokens.`, 'input');
  const wrong = tokenIds.find((id) => id < 0 || id >= vocabSize);
  if (wrong === undefined) return;
  throw new InvalidRequestError(
    `${what} has the token ${wrong}, but this model's vocabulary has ${vocabSize}.`,
    'input',
  );
}

/** Output rows of sequences, and the number of their tokens. @throws as EncoderHost.encode */
export async function encode(
  engine: RowEngine,
  sequences: readonly EncoderSequence[],
  { signal, onProgress }: Pick<EmbedOptions, 'signal' | 'onProgress'>,
  onAccepted: OnAccepted,
): Promise<{ rows: Float32Array[]; promptTokens: number }> {
  const promptTokens = sequences.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
  const onDone = onProgress && ((done: number) => onProgress(done, sequences.length));
  await onAccepted(promptTokens);
  return { rows: await engine.encode(sequences, { signal, onDone }), promptTokens };
}

/** Rows of texts and pictures, in the order of the inputs. */
async function encodeBoth(
  engine: RowEngine,
  {
    inputs,
    sequences,
    pictures,
    salt,
  }: {
    inputs: readonly EmbeddingInput[];
    sequences: readonly EncoderSequence[];
    pictures: readonly EncodedPicture[];
  } & Pick<PictureLoading, 'salt'>,
  { signal, onProgress }: Pick<EmbedOptions, 'signal' | 'onProgress'>,
  onAccepted: OnAccepted,
): Promise<{ rows: Float32Array[]; promptTokens: number }> {
  const ofPictures = pictures.reduce((sum, { tokens }) => sum + tokens, 0);
  let [textsDone, seen] = [0, 0];
  const tell = () => onProgress?.(textsDone + seen, inputs.length);
  const following = {
    signal,
    onProgress: (done: number) => {
      textsDone = done;
      tell();
    },
  };
  const onRow = () => {
    seen++;
    tell();
  };
  // Pictures begin when all is accepted, as texts do.
  let rowsOfPictures: Promise<Float32Array[]> | undefined;
  const { rows, promptTokens } = await encode(engine, sequences, following, async (ofTexts) => {
    await onAccepted(ofTexts + ofPictures);
    rowsOfPictures = rowsOfInputs(pictures, { signal, salt }, onRow);
    rowsOfPictures.catch(() => {});
  });
  const seenRows = await rowsOfPictures!;
  signal?.throwIfAborted();
  const [text, picture] = [rows.values(), seenRows.values()];
  return {
    rows: inputs.map((input) => (isPicture(input) ? picture : text).next().value!),
    promptTokens: promptTokens + ofPictures,
  };
}

/**
 * Converts truncate_prompt_tokens to a number of tokens. @throws InvalidRequestError where the model takes fewer tokens
 */
export function truncation(asked: number | undefined, maxSeqLen: number): number | undefined {
  if (asked === undefined) return undefined;
  if (asked === -1) return maxSeqLen;
  if (asked <= maxSeqLen) return asked;
  throw new InvalidRequestError(
    says`${field('truncatePromptTokens')} is ${asked}, but this model takes ${maxSeqLen} tokens at most.`,
    'truncatePromptTokens',
  );
}

function checkDimensions(dimensions: number, { head, outputWidth }: EncoderModel): void {
  if (dimensions === outputWidth || head.kind !== 'embedding') return;
  const { matryoshka } = head;
  if (matryoshka === null) {
    throw new InvalidRequestError(
      says`${field('dimensions')} is ${dimensions}, but this model was not trained for embeddings that are cut (Matryoshka); it gives ${outputWidth}.`,
      'dimensions',
    );
  }
  if (matryoshka === 'any' ? dimensions <= outputWidth : matryoshka.includes(dimensions)) return;
  const choices = matryoshka === 'any' ? `1 to ${outputWidth}` : [...matryoshka, outputWidth].join(', ');
  throw new InvalidRequestError(
    says`${field('dimensions')} is ${dimensions}; this model gives ${choices}.`,
    'dimensions',
  );
}

/** The row scaled to length 1, summed in double precision. */
export function unit(row: Float32Array): Float32Array {
  const length = Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));
  return row.map((value) => value / Math.max(length, 1e-12));
}
