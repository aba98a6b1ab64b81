import { readSync, writeSync } from 'node:fs';
import type { NetworkPlan } from '../../network/plan.js';
import { type EngineTensor, tensorsByWeight } from '../directory/engine-directory.js';

/** Numbers of a vector that have a factor in the plan. */
interface ScaledNumbers {
  /** Place of the first, in bytes. */
  offset: number;
  count: number;
  factor: number;
}

function scaledNumbers({ weights }: NetworkPlan, tensors: readonly EngineTensor[]): ScaledNumbers[] {
  const ofWeight = tensorsByWeight(tensors);
  return weights.flatMap(({ name, sources }) => {
    let { offset } = ofWeight.get(name)![0]!;
    return sources.flatMap(({ columns, rows, factor = 1 }) => {
      const numbers = { offset, count: rows * columns, factor };
      offset += 4 * numbers.count;
      return factor === 1 ? [] : [numbers];
    });
  });
}

/**
 * Multiplies the vectors of weights.bin that have a factor in the plan: a few thousand numbers of a norm, which belong to the network
 * rather than to the checkpoint. Vectors are f32, and each product is rounded once.
 *
 * @param fd weights.bin, converted already, open for reading and writing
 */
export function scaleVectors(fd: number, plan: NetworkPlan, tensors: readonly EngineTensor[]): void {
  for (const { offset, count, factor } of scaledNumbers(plan, tensors))
    scale(fd, offset, new Float32Array(count), factor);
}

/** The same for weights in memory. */
export function scaleVectorsIn(held: Uint8Array, plan: NetworkPlan, tensors: readonly EngineTensor[]): void {
  for (const { offset, count, factor } of scaledNumbers(plan, tensors))
    multiply(new Float32Array(held.buffer, held.byteOffset + offset, count), factor);
}

function multiply(values: Float32Array, factor: number): void {
  const multiplied = Math.fround(factor);
  for (let i = 0; i < values.length; i++) values[i]! *= multiplied;
}

function scale(fd: number, offset: number, values: Float32Array, factor: number): void {
  const bytes = new Uint8Array(values.buffer);
  if (readSync(fd, bytes, 0, bytes.length, offset) !== bytes.length)
    throw new Error(`weights.bin ends before byte ${offset + bytes.length}.`);
  multiply(values, factor);
  if (writeSync(fd, bytes, 0, bytes.length, offset) !== bytes.length)
    throw new Error(`weights.bin could not be written at byte ${offset}.`);
}
