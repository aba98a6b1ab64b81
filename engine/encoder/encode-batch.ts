import { type EncoderSequence, valuesOf } from '../../callbacks/encoder-messages.js';
import type { ItemsAnswer } from '../../callbacks/items-messages.js';
import { tokenWidth } from '../../models/encoder-config.js';
import { answerItems } from '../worker/answer-items.js';
import type { LoadedEncoder } from './load-encoder.js';

type Encoder = Pick<LoadedEncoder, 'encode' | 'outputWidth'> & {
  config: Pick<LoadedEncoder['config'], 'head'>;
};

/** Computes the rows of a batch; see answerItems. */
export function encodeBatch(encoder: Encoder, sequences: readonly EncoderSequence[]): ItemsAnswer {
  const { outputWidth, config } = encoder;
  const sizes = sequences.map((sequence) => valuesOf(sequence, { outputWidth, head: config.head }));
  return answerItems(sequences, sizes, (some, places) => fill(encoder, some, places), 'input');
}

/** Computes sequences together, and writes what each asks for to its place. */
function fill(
  encoder: Encoder,
  sequences: readonly EncoderSequence[],
  places: readonly Float32Array[],
): void {
  const { outputWidth, config } = encoder;
  const width = outputWidth + tokenWidth(config.head);
  const rows = encoder.encode(sequences);
  let end = 0;
  for (const [i, { tokenIds, output }] of sequences.entries()) {
    const place = places[i]!;
    const count = output === undefined ? 1 : tokenIds.length;
    end += count;
    const own = rows.subarray((end - count) * width, end * width);
    if (output === undefined) place.set(own.subarray(0, outputWidth));
    else if (output === 'weights') takeWeights(own, width, place);
    else takeVectors(own, width, outputWidth, place);
  }
}

/** The last value of each row is the weight of its token. */
function takeWeights(rows: Float32Array, width: number, place: Float32Array): void {
  for (let t = 0; t < place.length; t++) place[t] = rows[(t + 1) * width - 1]!;
}

/** The vectors of all tokens but the first, which begin in a column. */
function takeVectors(rows: Float32Array, width: number, column: number, place: Float32Array): void {
  const count = rows.length / width - 1;
  const size = place.length / count;
  for (let t = 0; t < count; t++) {
    const begin = (t + 1) * width + column;
    place.set(rows.subarray(begin, begin + size), t * size);
  }
}
