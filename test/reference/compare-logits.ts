import { expect } from 'vitest';
import type { TinyPrompt } from '../../tools/support/goldens.js';
import type { SequenceDriver } from '../../tools/support/sequence-driver.js';

/** Calls `compare` with the golden's logits and ours for every prompt, position and way of chunking. */
export function compareLogits(
  driver: SequenceDriver,
  prompts: readonly TinyPrompt[],
  chunks: readonly number[],
  compare: (reference: number[], ours: Float32Array, where: string) => void,
): void {
  for (const { promptIds, ropeFinalLength, logits } of prompts) {
    const positions = logits.map(({ position }) => position);
    for (const chunk of chunks) {
      driver.begin(ropeFinalLength);
      const ours = driver.logitsAt(promptIds, positions, chunk);
      for (const [i, { position, values }] of logits.entries()) {
        const where = `position ${position} of ${promptIds.length}, chunks of ${chunk}`;
        expect(ours[i]!.length, where).toBe(values.length);
        compare(values, ours[i]!, where);
      }
    }
  }
}

export function greatestDifference(reference: readonly number[], ours: ArrayLike<number>): number {
  return reference.reduce((max, value, i) => Math.max(max, Math.abs(value - ours[i]!)), 0);
}
