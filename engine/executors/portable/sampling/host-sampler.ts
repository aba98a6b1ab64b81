import type { ReturnedRows } from '../../../packed-call/packed-batch.js';
import type { SamplingBatch, SamplingOutput } from '../../../packed-call/sampling-batch.js';
import { LogProbs } from './log-probs.js';
import { RowSampler } from './row-sampler.js';

/** Samples rows of logits that lie in JavaScript's memory, one after the other. */
export class HostSampler {
  readonly #vocabSize: number;
  readonly #rows: RowSampler;

  constructor(vocabSize: number) {
    this.#vocabSize = vocabSize;
    this.#rows = new RowSampler(vocabSize);
  }

  /** @param logits [numRows x vocabSize]; afterwards as before */
  sample(sampling: SamplingBatch, output: SamplingOutput, logits: Float32Array): void {
    writeTopStart(sampling, output);
    for (let row = 0; row < sampling.numRows; row++) {
      this.#rows.sample(sampling, output, row, this.#rowOf(logits, row));
    }
  }

  /** Writes row `index` of the request, from row `row` of the logits. */
  returnRow(
    { logits: target, logProbs }: ReturnedRows,
    index: number,
    logits: Float32Array,
    row: number,
  ): void {
    const values = this.#rowOf(logits, row);
    target?.set(values, index * this.#vocabSize);
    if (logProbs === null) return;
    const { scan, selection } = this.#rows;
    const topTokens = logProbs.topTokens.subarray(index * logProbs.numTop, (index + 1) * logProbs.numTop);
    const topLogProbs = logProbs.topLogProbs.subarray(index * logProbs.numTop, (index + 1) * logProbs.numTop);
    scan.scan(values);
    if (!scan.isFinite) {
      logProbs.logProbs[index] = Number.NaN;
      topTokens.fill(-1);
      topLogProbs.fill(Number.NaN);
      return;
    }
    const probs = new LogProbs(values, scan);
    const token = logProbs.tokens[index]!;
    logProbs.logProbs[index] = token < 0 ? Number.NaN : probs.of(token);
    probs.top(selection, topTokens, topLogProbs);
  }

  #rowOf(logits: Float32Array, row: number): Float32Array {
    return logits.subarray(row * this.#vocabSize, (row + 1) * this.#vocabSize);
  }
}

/** Writes the first entry of each row's most probable tokens, by how many of them each row wants. */
function writeTopStart({ numRows, numTopLogProbs }: SamplingBatch, { topStart }: SamplingOutput): void {
  topStart[0] = 0;
  for (let row = 0; row < numRows; row++)
    topStart[row + 1] = topStart[row]! + Math.max(0, numTopLogProbs[row]!);
}
