import { columnHolder, type MemoryRegion } from '../../base/columns.js';
import { outputCounts } from '../packed-call/call-limits.js';
import { OUTPUT_TABLE, type SamplingBatch, type SamplingOutput } from '../packed-call/sampling-batch.js';

/** Room for the results of `maxRows` sampled rows: made once, except for the most probable tokens, whose room grows. */
export class SamplingResults extends columnHolder(OUTPUT_TABLE) implements SamplingOutput {
  /** @param region memory for the arrays; absent: memory of their own */
  constructor(maxRows: number, region?: MemoryRegion) {
    super(outputCounts(maxRows), region);
  }

  /** Makes room for all that the rows of a batch ask for: only its requests know how much that is. */
  makeRoom({ numRows, numTopLogProbs }: Pick<SamplingBatch, 'numRows' | 'numTopLogProbs'>): void {
    let needed = 0;
    for (let row = 0; row < numRows; row++) needed += Math.max(0, numTopLogProbs[row]!);
    if (needed > this.topTokens.length) OUTPUT_TABLE.grow(this, 'topEntry', needed);
  }
}
