import type { PackedBatch, ReturnedRows } from '../../packed-call/packed-batch.js';
import type { NetworkRunner } from './network-runner.js';
import type { HostSampler } from './sampling/host-sampler.js';

/**
 * Hands out logits of rows of T. There is memory for maxLogitRows rows of logits, so the head runs in passes over that many
 * rows, each handed out before the next:
 *
 *   rows of T wanted   0 1 2 3 4 5 6 7 | 12 13          maxLogitRows 4
 *   passes             [0 1 2 3] [4 5 6 7] [12 13]
 */
export function returnTokenRows(
  batch: PackedBatch,
  runner: NetworkRunner,
  sampler: HostSampler,
  maxLogitRows: number,
): void {
  const wanted: { rows: ReturnedRows; index: number }[] = [];
  for (const rows of batch.returnedRows ?? []) {
    for (let index = 0; rows.of === 'tokens' && index < rows.count; index++) wanted.push({ rows, index });
  }
  for (let begin = 0; begin < wanted.length; begin += maxLogitRows) {
    const pass = wanted.slice(begin, begin + maxLogitRows);
    runner.head(Int32Array.from(pass, ({ rows, index }) => rows.first + index));
    const logits = runner.logits();
    for (const [row, { rows, index }] of pass.entries()) sampler.returnRow(rows, index, logits, row);
  }
}

/** Hands out rows of the logits that are sampled; calls `logits` only if any are wanted. */
export function returnSampledRows(
  batch: PackedBatch,
  logits: () => Float32Array,
  sampler: HostSampler,
): void {
  for (const rows of batch.returnedRows ?? []) {
    if (rows.of === 'tokens') continue;
    const values = logits();
    for (let index = 0; index < rows.count; index++)
      sampler.returnRow(rows, index, values, rows.first + index);
  }
}
