/**
 * Micro-benchmark of the native kernels on one thread.
 *
 *   npm run build:native && npx tsx tools/kernel-bench/main.ts [instruction set] [f32,bf16,int8,int4]
 *
 * Prints GOP/s of each GEMM shape beside a register-only loop of the same instruction mix measured in the same run,
 * the rate at which one row reads the weights beside plain reading, and the time of attention.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

type Fields = Record<string, unknown>;
interface Kernels {
  names(): string[];
  shape(table: string): { panelWidth: number; tileRows: number };
  pack(table: string, fields: Fields): Uint8Array;
  quantize(table: string, fields: Fields): Uint8Array;
  gemm(table: string, fields: Fields): void;
  attention(table: string, fields: Fields): void;
  peak(table: string, fields: Fields): number;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const kernels: Kernels = createRequire(import.meta.url)('node-gyp-build')(root).kernels;
const real = kernels.names().filter((name) => name !== 'scalar' && name !== 'emulated16');
const table = process.argv[2] ?? real.at(-1);
if (!table || !real.includes(table)) {
  throw new Error(`kernel-bench: expected one of the instruction sets ${real.join(', ')}, found '${table}'`);
}

/**
 * Processor seconds (not wall clock) of the fastest of many rounds of about 4 ms: other work on the machine
 * takes turns with this process, and what it does to the caches only adds time.
 */
function secondsOf(run: () => void): number {
  run();
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 25; round++) {
    const start = process.cpuUsage();
    let count = 0;
    let seconds = 0;
    for (; seconds < 0.004; count++) {
      run();
      const used = process.cpuUsage(start);
      seconds = (used.user + used.system) / 1e6;
    }
    best = Math.min(best, seconds / count);
  }
  return best;
}

type Dtype = 'f32' | 'bf16' | 'int8' | 'int4';
const dtypes = (process.argv[3] ?? 'f32,bf16,int8,int4').split(',') as Dtype[];
const quantized = (dtype: Dtype) => dtype === 'int8' || dtype === 'int4';

const peakOf = (dtype: Dtype) => {
  let operations = 0;
  const seconds = secondsOf(() => {
    operations = kernels.peak(table, { dtype, iterations: 20_000 });
  });
  return operations / seconds / 1e9;
};

/** Row-major weights of any finite value. */
function weights(dtype: Dtype, n: number, k: number): Float32Array | Uint16Array {
  if (dtype === 'f32') return new Float32Array(n * k).fill(0.5);
  if (dtype === 'bf16') return new Uint16Array(n * k).fill(0x3f00);
  return new Uint16Array((n * Math.ceil(k / 32) * (dtype === 'int8' ? 34 : 20)) / 2).fill(0x2c11);
}

const shapes = [
  { n: 1536, k: 576 },
  { n: 576, k: 1536 },
];
for (const dtype of dtypes) {
  const peak = peakOf(dtype);
  console.log(`${table} ${dtype}: register-only loop ${peak.toFixed(1)} GOP/s`);
  for (const { n, k } of shapes) {
    const packed = kernels.pack(table, { dtype, w: weights(dtype, n, k), n, k, gated: 0 });
    const panels = Math.ceil(n / kernels.shape(table).panelWidth);
    for (const rows of [1, 2, 3, 4, 8, 16, 32, 64, 128, 256]) {
      const x = Float32Array.from({ length: rows * k }, (_, i) => Math.sin(i));
      const y = new Float32Array(rows * n);
      const input = quantized(dtype)
        ? { quantized: kernels.quantize(table, { dtype, x, ldx: k, k, rows }) }
        : { x };
      const operand = { ...input, quantizedRows: rows, ldx: k, packed, dtype, n, k };
      const fields = { ...operand, bias: null, residual: null, ldr: 0, y, ldy: n, activation: 0 };
      const range = { rowBegin: 0, rowEnd: rows, panelBegin: 0, panelEnd: panels };
      const seconds = secondsOf(() => kernels.gemm(table, { ...fields, ...range }));
      const rate = (2 * rows * n * k) / seconds / 1e9;
      console.log(
        `gemm ${dtype} n=${n} k=${k} rows=${rows}: ${rate.toFixed(1)} GOP/s, ${((100 * rate) / peak).toFixed(0)} % of peak`,
      );
    }
  }
}

for (const dtype of dtypes.filter(quantized)) {
  const [rows, k] = [64, 1536];
  const x = Float32Array.from({ length: rows * k }, (_, i) => Math.sin(i));
  const seconds = secondsOf(() => kernels.quantize(table, { dtype, x, ldx: k, k, rows }));
  console.log(
    `rounding of ${rows} rows of ${k} for ${dtype}: ${((rows * k) / seconds / 1e9).toFixed(2)} G values/s`,
  );
}

// One row over more weights than any cache holds.
for (const dtype of dtypes) {
  const n = 49152;
  const k = 1536;
  const bytes =
    kernels.pack(table, { dtype, w: weights(dtype, 32, k), n: 32, k, gated: 0 }).length * (n / 32);
  const packed = new Uint8Array(bytes).fill(0x3c); // pages never written would share one
  const x = new Float32Array(k).fill(1);
  const input = quantized(dtype)
    ? { quantized: kernels.quantize(table, { dtype, x, ldx: k, k, rows: 1 }) }
    : { x };
  const fields = {
    ...input,
    quantizedRows: 1,
    ldx: k,
    packed,
    dtype,
    n,
    k,
    bias: null,
    residual: null,
    ldr: 0,
  };
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
