import { readFileSync, truncateSync } from 'node:fs';
import { expect } from 'vitest';
import { memoryOf, type SkeinProcess } from '../support/skein-process.js';

/** Bytes after the garbage is gone. */
export interface Memory {
  /** Of the thread that serves, with what it holds outside of its heap. */
  main: number;
  /** Of the engine's worker. */
  worker: number;
  process: number;
}

/** @param heapFile where the fake executor writes what its thread holds. @param step makes the engine take a step. */
export async function heldMemory(
  server: SkeinProcess,
  heapFile: string,
  step: () => Promise<unknown>,
): Promise<Memory> {
  truncateSync(heapFile);
  await step();
  await expect.poll(() => readFileSync(heapFile, 'utf8')).toMatch(/^\d+$/);
  const { heap, external, rss } = await memoryOf(server);
  return { main: heap + external, worker: Number(readFileSync(heapFile, 'utf8')), process: rss };
}

/**
 * How much more is held in the second half of the samples than in the first, by the least of each: what is held for a moment
 * only makes a sample larger, while a leak makes all that come after it larger.
 */
export function growth(samples: readonly Memory[]): Memory {
  const middle = samples.length >> 1;
  const grown = (name: keyof Memory) => {
    const least = (part: readonly Memory[]) => Math.min(...part.map((sample) => sample[name]));
    return least(samples.slice(middle)) - least(samples.slice(0, middle));
  };
  return { main: grown('main'), worker: grown('worker'), process: grown('process') };
}
