import { performance } from 'node:perf_hooks';
import { messageOf } from '../../base/error-text.js';
import type { EncoderAnswer, EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { LoadedEncoder } from './load-encoder.js';

/**
 * Computes the rows of a batch. If the batch fails as a whole, each sequence is tried by itself, so that the error goes
 * to the sequence that caused it; a row that is not finite is an error of its sequence too.
 */
export function encodeBatch(
  encoder: Pick<LoadedEncoder, 'encode' | 'outputWidth'>,
  sequences: readonly EncoderSequence[],
): EncoderAnswer {
  const startMs = performance.now();
  const width = encoder.outputWidth;
  const rows = new Float32Array(sequences.length * width);
  const errors: (string | null)[] = sequences.map(() => null);
  try {
    rows.set(encoder.encode(sequences));
  } catch (error) {
    if (sequences.length === 1) errors[0] = messageOf(error);
    else for (const [i, sequence] of sequences.entries()) alone(encoder, sequence, i, rows, errors);
  }
  for (let i = 0; i < sequences.length; i++) {
    const row = rows.subarray(i * width, (i + 1) * width);
    if (errors[i] !== null || row.every(Number.isFinite)) continue;
    errors[i] = 'The network gave values that are not finite for this input.';
    row.fill(0);
  }
  return { type: 'rows', rows, errors, forwardMs: performance.now() - startMs };
}

function alone(
  encoder: Pick<LoadedEncoder, 'encode' | 'outputWidth'>,
  sequence: EncoderSequence,
  index: number,
  rows: Float32Array,
  errors: (string | null)[],
): void {
  try {
    rows.set(encoder.encode([sequence]), index * encoder.outputWidth);
  } catch (error) {
    errors[index] = messageOf(error);
  }
}
