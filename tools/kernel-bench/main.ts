/**
 * Micro-benchmark of the native kernels on one thread.
 *
 *   npm run build:native && npx tsx tools/kernel-bench/main.ts [instruction set]
 *
 * Prints GFLOP/s of each GEMM shape beside a register-only loop of fused multiply-adds measured in the same run,
 * the rate at which one row reads the weights, and the time of attention.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

type Fields = Record<string, unknown>;
interface Kernels {
  names(): string[];
  shape(table: string): { panelWidth: number; tileRows: number };
  pack(table: string, fields: Fields): Uint8Array;
  gemm(table: string, fields: Fields): void;
  attention(table: string, fields: Fields): void;
  peak(table: string, iterations: number): number;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const kernels: Kernels = createRequire(import.meta.url)('node-gyp-build')(root).kernels;
const real = kernels.names().filter((name) => name !== 'scalar' && name !== 'emulated16');
const table = process.argv[2] ?? real.at(-1);
if (!table || !real.includes(table)) {
  throw new Error(`kernel-bench: expected one of the instruction sets ${real.join(', ')}, found '${table}'`);
}

/**
 * Processor seconds (not wall clock) of the fastest of several rounds of at least 20 ms: other work on the machine
 * takes turns with this process, and what it does to the caches only adds time.
 */
function secondsOf(run: () => void): number {
  run();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    const start = process.cpuUsage();
    let count = 0;
    let seconds = 0;
    for (; seconds < 0.02; count++) {
      run();
      const used = process.cpuUsage(start);
      seconds = (used.user + used.system) / 1e6;
    }
    best = Math.min(best, seconds / count);
  }
  return best;
}

const iterations = 1_000_000;
let flops = 0;
const peakSeconds = secondsOf(() => {
  flops = kernels.peak(table, iterations);
});
const peak = flops / peakSeconds / 1e9;
console.log(`${table}: register-only loop ${peak.toFixed(1)} GFLOP/s`);

const shapes = [
  { n: 1536, k: 576 },
  { n: 576, k: 1536 },
];
for (const dtype of ['f32', 'bf16'] as const) {
  for (const { n, k } of shapes) {
    const w = dtype === 'f32' ? new Float32Array(n * k).fill(0.5) : new Uint16Array(n * k).fill(0x3f00);
    const packed = kernels.pack(table, { dtype, w, n, k, gated: 0 });
    const panels = Math.ceil(n / kernels.shape(table).panelWidth);
    for (const rows of [1, 2, 3, 4, 8, 16, 32, 64, 128, 256]) {
      const x = new Float32Array(rows * k).fill(0.25);
      const y = new Float32Array(rows * n);
      const fields = {
        x,
        ldx: k,
        packed,
        dtype,
        n,
        k,
        bias: null,
        residual: null,
        ldr: 0,
        y,
        ldy: n,
        activation: 0,
      };
      const range = { rowBegin: 0, rowEnd: rows, panelBegin: 0, panelEnd: panels };
      const seconds = secondsOf(() => kernels.gemm(table, { ...fields, ...range }));
      const rate = (2 * rows * n * k) / seconds / 1e9;
      console.log(
        `gemm ${dtype} n=${n} k=${k} rows=${rows}: ${rate.toFixed(1)} GFLOP/s, ${((100 * rate) / peak).toFixed(0)} % of peak`,
      );
    }
  }
}

// One row over more weights than any cache holds.
for (const dtype of ['f32', 'bf16'] as const) {
  const n = 49152;
  const k = 1536;
  const packed = new Uint8Array(n * k * (dtype === 'f32' ? 4 : 2)).fill(0x3c); // pages never written would share one
  const fields = { x: new Float32Array(k), ldx: k, packed, dtype, n, k, bias: null, residual: null, ldr: 0 };
  const rest = { y: new Float32Array(n), ldy: n, activation: 0, rowBegin: 0, rowEnd: 1, panelBegin: 0 };
  const panelEnd = Math.ceil(n / kernels.shape(table).panelWidth);
  const seconds = secondsOf(() => kernels.gemm(table, { ...fields, ...rest, panelEnd }));
  console.log(`one row ${dtype}: ${(packed.length / seconds / 1e9).toFixed(1)} GB/s of weights`);
}

for (const dtype of ['f32', 'bf16'] as const) {
  for (const [rows, context] of [
    [1, 192],
    [1, 2048],
    [128, 128],
  ] as const) {
    const [numHeads, kvHeads, headDim, tokensPerBlock] = [9, 3, 64, 32];
    const blocks = Math.ceil(context / tokensPerBlock);
    const elements = blocks * 2 * kvHeads * tokensPerBlock * headDim;
    const fields = {
      dtype,
      cache: dtype === 'f32' ? new Float32Array(elements) : new Uint16Array(elements),
      tokensPerBlock,
      kvHeads,
      headDim,
      blockTable: Int32Array.from({ length: blocks }, (_, i) => i),
      q: new Float32Array(rows * 576),
      ldq: 576,
      numHeads,
      firstPosition: context - rows,
      scale: 0.125,
      rowBegin: 0,
      rowEnd: rows,
      y: new Float32Array(rows * 576),
    };
    const seconds = secondsOf(() => kernels.attention(table, fields));
    console.log(
      `attention ${dtype} rows=${rows} context=${context}, 9 heads of 64: ${(seconds * 1e6).toFixed(1)} us a layer`,
    );
  }
}
