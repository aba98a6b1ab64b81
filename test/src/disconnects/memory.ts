import { readFileSync, truncateSync } from 'node:fs';
import { expect } from 'vitest';
import { median } from '../../../tools/support/statistics.js';
import { memoryOf, type SkeinProcess } from '../support/skein-process.js';

/** Bytes after the garbage is gone. */
export interface Memory {
  /** Bytes of the thread that serves: its heap, and what it holds outside of it. */
  main: number;
  /** Bytes of the engine's worker. */
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
 * Growth of the memory held from the first half of the samples to the second. A leak makes all later samples larger.
 * The least of each half counts for a heap: memory held for a moment only makes a sample larger. The median counts for the process:
 * now and then the allocator gives a lot back to the system for a moment, so that a sample can also be far smaller.
 */
export function growth(samples: readonly Memory[]): Memory {
  const middle = samples.length >> 1;
  const grown = (name: keyof Memory, of: (values: number[]) => number) => {
    const part = (part: readonly Memory[]) => of(part.map((sample) => sample[name]));
    return part(samples.slice(middle)) - part(samples.slice(0, middle));
  };
  const least = (values: number[]) => Math.min(...values);
  return { main: grown('main', least), worker: grown('worker', least), process: grown('process', median) };
}
