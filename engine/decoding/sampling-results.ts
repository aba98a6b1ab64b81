import { columnHolder, type MemoryRegion } from '../../base/columns.js';
import { outputCounts } from '../packed-call/call-limits.js';
import { OUTPUT_TABLE, type SamplingBatch, type SamplingOutput } from './sampling-batch.js';

/** Room for what `maxRows` rows of sampling give back: made once, but for the most probable tokens, whose room grows. */
export class SamplingResults extends columnHolder(OUTPUT_TABLE) implements SamplingOutput {
  /** `region`: where the arrays lie; absent: in memory of their own. */
  constructor(maxRows: number, region?: MemoryRegion) {
    super(outputCounts(maxRows), region);
  }

  /** Makes room for all that the rows of a batch ask for: how much that is only its requests know. */
  makeRoom({ numRows, numTopLogProbs }: Pick<SamplingBatch, 'numRows' | 'numTopLogProbs'>): void {
    let needed = 0;
    for (let row = 0; row < numRows; row++) needed += Math.max(0, numTopLogProbs[row]!);
    if (needed > this.topTokens.length) OUTPUT_TABLE.grow(this, 'topEntry', needed);
  }
}
