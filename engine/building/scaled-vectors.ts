import { readSync, writeSync } from 'node:fs';
import type { NetworkPlan } from '../../network/plan.js';
import { type EngineTensor, tensorsByWeight } from '../directory/engine-directory.js';

/**
 * Multiplies the vectors of weights.bin that have a factor in the plan: a few thousand numbers of a norm, which belong to the network
 * rather than to the checkpoint. Vectors are f32, and each product is rounded once.
 *
 * @param fd weights.bin, converted already, open for reading and writing
 */
export function scaleVectors(fd: number, { weights }: NetworkPlan, tensors: readonly EngineTensor[]): void {
  const ofWeight = tensorsByWeight(tensors);
  for (const { name, sources } of weights) {
    let { offset } = ofWeight.get(name)![0]!;
    for (const { columns, rows, factor = 1 } of sources) {
      if (factor !== 1) scale(fd, offset, new Float32Array(rows * columns), factor);
      offset += 4 * rows * columns;
    }
  }
}

function scale(fd: number, offset: number, values: Float32Array, factor: number): void {
  const bytes = new Uint8Array(values.buffer);
  if (readSync(fd, bytes, 0, bytes.length, offset) !== bytes.length)
    throw new Error(`weights.bin ends before byte ${offset + bytes.length}.`);
  const multiplied = Math.fround(factor);
  for (let i = 0; i < values.length; i++) values[i]! *= multiplied;
  if (writeSync(fd, bytes, 0, bytes.length, offset) !== bytes.length)
    throw new Error(`weights.bin could not be written at byte ${offset}.`);
}
