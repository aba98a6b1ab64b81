import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { blockBytes, blockElements, QUANTIZED_TYPES, type QuantizedType } from '../../support/quantized.js';

export type Dtype = 'f32' | 'bf16' | QuantizedType;
export const DTYPES: readonly Dtype[] = ['f32', 'bf16', ...QUANTIZED_TYPES];
type Fields = Record<string, unknown>;

/** The addon's kernels as functions over typed arrays, each with the name of its instruction set in front. */
export interface Kernels {
  names(): string[];
  shape(table: string): { panelWidth: number; tileRows: number };
  pack(table: string, fields: Fields): Uint8Array;
  round(table: string, fields: Fields): Uint8Array;
  gemm(table: string, fields: Fields): void;
  attention(table: string, fields: Fields): void;
  /** Operations of a register-only loop. */
  peak(table: string, fields: Fields): number;
  /** Plain reading. */
  read(table: string, fields: Fields): void;
}

const root = fileURLToPath(new URL('../../../', import.meta.url));

export function loadKernels(): Kernels {
  return createRequire(import.meta.url)('node-gyp-build')(root).kernels;
}

/** The named instruction set, or the best one. @throws where this processor has no such kernels. */
export function chooseTable(kernels: Kernels, name: string): string {
  const real = kernels.names().filter((table) => table !== 'scalar' && !table.startsWith('emulated'));
  const chosen = name === '' ? real.at(-1) : real.find((table) => table === name);
  if (chosen === undefined)
    throw new Error(`--isa: expected one of the instruction sets ${real.join(', ')}, found '${name}'.`);
  return chosen;
}

/** The kernels that an executor of an instruction set has: with dot products of bytes where the processor has them. */
export function tableOfSet(kernels: Kernels, isa: string): string {
  const better: Readonly<Record<string, readonly string[]>> = {
    avx512: ['avx512vnni'],
    neon: ['neoni8mm', 'neondot'],
  };
  return better[isa]?.find((name) => kernels.names().includes(name)) ?? isa;
}

export function isQuantized(dtype: Dtype): dtype is QuantizedType {
  return dtype !== 'f32' && dtype !== 'bf16';
}

/** Row-major weights of any finite value. */
export function anyWeights(dtype: Dtype, n: number, k: number): Float32Array | Uint16Array {
  if (dtype === 'f32') return new Float32Array(n * k).fill(0.5);
  if (dtype === 'bf16') return new Uint16Array(n * k).fill(0x3f00);
  return new Uint16Array((n * Math.ceil(k / blockElements(dtype)) * blockBytes(dtype)) / 2).fill(0x2c11);
}

/** The fields of a product's activations: any finite values, rounded where the weights want it. */
export function anyInput(kernels: Kernels, table: string, dtype: Dtype, rows: number, k: number): Fields {
  const x = Float32Array.from({ length: rows * k }, (_, i) => Math.sin(i));
  const rounded = kernels.round(table, { dtype, x, ldx: k, k, rows });
  return { ...(rounded.length === 0 ? { x } : { rounded }), roundedRows: rows, ldx: k };
}

/**
 * Processor seconds (not wall clock) of the fastest of many rounds of about 4 ms: other work on the machine
 * takes turns with this process, and what it does to the caches only adds time.
 */
export function processorSeconds(run: () => void): number {
  return processorSecondsByTurns([run])[0]!;
}

/** The same of several, which take turns round by round, so that they can be compared on a machine that drifts. */
export function processorSecondsByTurns(runs: readonly (() => void)[]): number[] {
  for (const run of runs) run();
  const best = runs.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < 25; round++) {
    for (const [i, run] of runs.entries()) best[i] = Math.min(best[i]!, secondsOfRound(run));
  }
  return best;
}

function secondsOfRound(run: () => void): number {
  const start = process.cpuUsage();
  let count = 0;
  let seconds = 0;
  for (; seconds < 0.004; count++) {
    run();
    const used = process.cpuUsage(start);
    seconds = (used.user + used.system) / 1e6;
  }
  return seconds / count;
}

/** Wall clock of the fastest of many turns of each: what several threads need together. */
export function wallSeconds(runs: readonly (() => void)[]): number[] {
  for (const run of runs) run();
  const best = runs.map(() => Number.POSITIVE_INFINITY);
  for (let turn = 0; turn < 15; turn++) {
    for (const [i, run] of runs.entries()) {
      const start = performance.now();
      run();
      best[i] = Math.min(best[i]!, performance.now() - start);
    }
  }
  return best.map((ms) => ms / 1000);
}
