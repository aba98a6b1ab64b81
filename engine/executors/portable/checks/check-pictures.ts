import { attendsWithinPictures } from '../../../../network/attention-mask.js';
import type { PackedBatch } from '../../../packed-call/packed-batch.js';
import type { BatchLimits } from './check-batch.js';
import { checkArrays } from './fields.js';

/** Checks that each picture lies within one sequence, after the picture before it. */
export function checkPictures(batch: PackedBatch, { plan, window }: BatchLimits): void {
  const { pictures, numSequences, queryStart } = batch;
  if (pictures == null) return;
  checkArrays(batch, 'integers', ['pictures']);
  if (pictures.length === 0) return;
  if (!attendsWithinPictures(plan))
    throw new Error('pictures names rows, but no layer attends within pictures.');
  if (window !== null)
    throw new Error('pictures names rows, but an attention window does not keep pictures whole.');
  if (pictures.length % 2 !== 0)
    throw new Error(`pictures has ${pictures.length} numbers, but two of each picture are expected.`);
  let sequence = 0;
  let end = 0;
  for (let i = 0; i < pictures.length; i += 2) {
    const [first, count] = [pictures[i]!, pictures[i + 1]!];
    while (sequence < numSequences && queryStart[sequence + 1]! <= first) sequence++;
    const isRight =
      count >= 1 && first >= end && sequence < numSequences && first + count <= queryStart[sequence + 1]!;
    if (!isRight)
      throw new Error(
        `pictures has rows ${first} to ${first + count}, but rows of one sequence from ${end} on are expected there.`,
      );
    end = first + count;
  }
}
