import { RESPONSE_BEAM, RESPONSE_LOG_PROBS, type ResponseBatch } from './response-batch.js';
import type { NamedTensor } from './types.js';

/** Consecutive entries of a batch that are the beams of one response. */
export interface BeamEntries {
  first: number;
  width: number;
  /** Index of the beams' first entry in topTokens and topLogProbs. */
  topStart: number;
}

/** Number of entries from `first` on that are the beams of one response. */
export function countBeams({ count, flags, sequenceIndexes }: ResponseBatch, first: number): number {
  let width = 1;
  while (
    first + width < count &&
    (flags[first + width]! & RESPONSE_BEAM) !== 0 &&
    sequenceIndexes[first + width] === width
  ) {
    width++;
  }
  return width;
}

/** The tensors of the beams; see unpackResponses for their shapes. */
export function beamOutputs(batch: ResponseBatch, beams: BeamEntries, maxSeqLen: number): NamedTensor[] {
  const { first, width } = beams;
  const ids = new Int32Array(width * maxSeqLen).fill(batch.padIds[first]!);
  for (let beam = 0; beam < width; beam++) {
    const { tokenStart, tokens } = batch;
    ids.set(tokens.subarray(tokenStart[first + beam]!, tokenStart[first + beam + 1]!), beam * maxSeqLen);
  }
  const outputs: NamedTensor[] = [
    { name: 'output_ids', shape: [1, width, maxSeqLen], data: ids },
    { name: 'sequence_length', shape: [1, width], data: batch.sequenceLengths.slice(first, first + width) },
    {
      name: 'finish_reasons',
      shape: [1, width],
      data: Int32Array.from(batch.finishReasons.subarray(first, first + width)),
    },
  ];
  if ((batch.flags[first]! & RESPONSE_LOG_PROBS) !== 0) pushLogProbs(outputs, batch, beams);
  return outputs;
}

function pushLogProbs(
  outputs: NamedTensor[],
  batch: ResponseBatch,
  { first, width, topStart }: BeamEntries,
): void {
  const starts = batch.logProbStart.subarray(first, first + width + 1);
  const lengths = Array.from({ length: width }, (_, beam) => starts[beam + 1]! - starts[beam]!);
  const longest = Math.max(...lengths);
  const k = batch.topWidths[first]!;
  const logProbs = new Float32Array(width * longest);
  const topTokens = new Int32Array(width * longest * k).fill(-1);
  const topLogProbs = new Float32Array(width * longest * k);
  let top = topStart;
  for (const [beam, length] of lengths.entries()) {
    logProbs.set(batch.logProbs.subarray(starts[beam]!, starts[beam + 1]!), beam * longest);
    topTokens.set(batch.topTokens.subarray(top, top + length * k), beam * longest * k);
    topLogProbs.set(batch.topLogProbs.subarray(top, top + length * k), beam * longest * k);
    top += length * k;
  }
  const sums = Float32Array.from(batch.cumLogProbs.subarray(first, first + width));
  outputs.push({ name: 'output_log_probs', shape: [1, width, longest], data: logProbs });
  outputs.push({ name: 'cum_log_probs', shape: [1, width], data: sums });
  if (k === 0) return;
  const shape = [1, width, longest, k];
  outputs.push({ name: 'top_token_ids', shape, data: topTokens });
  outputs.push({ name: 'top_log_probs', shape: [...shape], data: topLogProbs });
}
