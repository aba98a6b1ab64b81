import { markdownTable } from '../../support/markdown-table.js';
import { blockElements } from '../../support/quantized.js';
import {
  anyInput,
  anyWeights,
  type Dtype,
  isQuantized,
  type Kernels,
  processorSeconds,
  processorSecondsByTurns,
  wallSeconds,
} from './hooks.js';

const GEMM_ROWS = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256];
/** The products of SmolLM2-135M into the MLP and out of it. */
const GEMM_SHAPES = [
  { n: 1536, k: 576 },
  { n: 576, k: 1536 },
];

/** Speed of products on one thread: GOP/s of a loop that uses registers alone, and each product's share of it. */
export function gemmTable(kernels: Kernels, isa: string, dtypes: readonly Dtype[]): string {
  const rows = dtypes.flatMap((dtype) =>
    shapesOf(dtype).map(({ n, k }) => {
      // The peak is measured next to each shape, so that a machine that drifts does not drift between the
      // two.
      const peak = peakRate(kernels, isa, dtype);
      const shares = gemmRates(kernels, isa, dtype, n, k).map(
        (rate) => `${((100 * rate) / peak).toFixed(0)} %`,
      );
      return [`${dtype}, n ${n}, k ${k}`, peak.toFixed(0), ...shares];
    }),
  );
  return markdownTable(['weights, shape', 'registers, GOP/s', ...GEMM_ROWS.map(rowsTitle)], rows);
}

/** How many times as fast as `other` an instruction set is: products, and attention over an int8 cache. */
export function besideTable(kernels: Kernels, isa: string, other: string, dtypes: readonly Dtype[]): string {
  const ratioOf = (runOf: (table: string) => () => void) => {
    const [own, others] = processorSecondsByTurns([runOf(isa), runOf(other)]);
    return (others! / own!).toFixed(2);
  };
  const products = dtypes.flatMap((dtype) =>
    shapesOf(dtype).map(({ n, k }) => [
      `${dtype}, n ${n}, k ${k}`,
      ...GEMM_ROWS.map((rows) => ratioOf((table) => gemmRun(kernels, table, dtype, { n, k, rows }))),
    ]),
  );
  const attention = ATTENTION_SHAPES.map((shape) =>
    ratioOf((table) => attentionRun(kernels, table, 'int8', shape)),
  );
  return [
    markdownTable(['weights, shape', ...GEMM_ROWS.map(rowsTitle)], products),
    '',
    markdownTable(['', ...ATTENTION_SHAPES.map(attentionTitle)], [['attention, int8 cache', ...attention]]),
  ].join('\n');
}

function shapesOf(dtype: Dtype): { n: number; k: number }[] {
  if (!isQuantized(dtype)) return GEMM_SHAPES;
  // Superblocks fill rows to a multiple of their length.
  const block = blockElements(dtype);
  return GEMM_SHAPES.map(({ n, k }) => ({ n, k: Math.ceil(k / block) * block }));
}

function rowsTitle(count: number): string {
  return count === 1 ? '1 row' : `${count} rows`;
}

/** GOP/s of a loop of the format's own instructions that uses registers alone, on one thread. */
function peakRate(kernels: Kernels, isa: string, dtype: Dtype): number {
  let operations = 0;
  const seconds = processorSeconds(() => {
    operations = kernels.peak(isa, { dtype, iterations: 20_000 });
  });
  return operations / seconds / 1e9;
}

/** GOP/s for each of GEMM_ROWS. */
function gemmRates(kernels: Kernels, isa: string, dtype: Dtype, n: number, k: number): number[] {
  return GEMM_ROWS.map(
    (rows) => (2 * rows * n * k) / processorSeconds(gemmRun(kernels, isa, dtype, { n, k, rows })) / 1e9,
  );
}

function gemmRun(
  kernels: Kernels,
  isa: string,
  dtype: Dtype,
  { n, k, rows }: { n: number; k: number; rows: number },
): () => void {
  const packed = kernels.pack(isa, { dtype, w: anyWeights(dtype, n, k), n, k, gated: 0 });
  const panelEnd = Math.ceil(n / kernels.shape(isa).panelWidth);
  const fields = {
    ...anyInput(kernels, isa, dtype, rows, k),
    ...{ packed, dtype, n, k, bias: null, residual: null, ldr: 0, activation: 0 },
    ...{ y: new Float32Array(rows * n), ldy: n, rowBegin: 0, rowEnd: rows, panelBegin: 0, panelEnd },
  };
  return () => kernels.gemm(isa, fields);
}

/** Far more than any cache holds. */
const READ_BYTES = 512 * 2 ** 20;
/** Bytes of the weights that one row is multiplied by. */
const STREAM_BYTES = 256 * 2 ** 20;
/** Bytes ahead that the probe asks for; the best of them counts. */
const READ_AHEAD = [0, 512, 1024, 2048, 4096];

/** GB/s at which a product with one row streams its weights, and its share of plain reading, by threads. */
export function readingTable(
  kernels: Kernels,
  isa: string,
  dtypes: readonly Dtype[],
  threads: readonly number[],
): string {
  const data = new Uint8Array(READ_BYTES).fill(1); // pages never written would share one
  const reads = READ_AHEAD.map((ahead) => ({
    bytes: READ_BYTES,
    run: (count: number) => kernels.read(isa, { data, bytes: READ_BYTES, ahead, threads: count }),
  }));
  const streams = dtypes.map((dtype) => oneRowStream(kernels, isa, dtype));
  const all = [...reads, ...streams];
  const columns = threads.map((count) => {
    const seconds = wallSeconds(
      all.map(
        ({ run }) =>
          () =>
            run(count),
      ),
    );
    const rates = all.map(({ bytes }, i) => bytes / seconds[i]! / 1e9);
    return { plain: Math.max(...rates.slice(0, reads.length)), streamed: rates.slice(reads.length) };
  });
  const rows = dtypes.map((dtype, i) => {
    const cells = columns.map(({ plain, streamed }) => {
      const rate = streamed[i]!;
      return `${rate.toFixed(1)} (${((100 * rate) / plain).toFixed(0)} %)`;
    });
    return [`one row, ${dtype} weights`, ...cells];
  });
  const titles = threads.map((count) => (count === 1 ? '1 thread, GB/s' : `${count} threads, GB/s`));
  return markdownTable(
    ['', ...titles],
    [['plain reading', ...columns.map(({ plain }) => plain.toFixed(1))], ...rows],
  );
}

function oneRowStream(kernels: Kernels, isa: string, dtype: Dtype) {
  const k = 1536;
  const part = kernels.pack(isa, { dtype, w: anyWeights(dtype, 32, k), n: 32, k, gated: 0 });
  // Each type has as many bytes: the start of a thread would weigh more in a shorter product.
  const parts = Math.floor(STREAM_BYTES / part.length);
  const n = 32 * parts;
  const packed = new Uint8Array(part.length * parts);
  for (let at = 0; at < packed.length; at += part.length) packed.set(part, at);
  const fields = {
    ...anyInput(kernels, isa, dtype, 1, k),
    ...{ packed, dtype, n, k, bias: null, residual: null, ldr: 0, activation: 0 },
    ...{ y: new Float32Array(n), ldy: n, rowBegin: 0, rowEnd: 1 },
    ...{ panelBegin: 0, panelEnd: Math.ceil(n / kernels.shape(isa).panelWidth) },
  };
  return { bytes: packed.length, run: (threads: number) => kernels.gemm(isa, { ...fields, threads }) };
}

/** Speed of rounding rows of activations to 8 bits; '' if no weights need it. */
export function roundingLine(kernels: Kernels, isa: string, dtypes: readonly Dtype[]): string {
  const [rows, k] = [64, 1536];
  const x = Float32Array.from({ length: rows * k }, (_, i) => Math.sin(i));
  const rates = dtypes.filter(isQuantized).map((dtype) => {
    const seconds = processorSeconds(() => kernels.round(isa, { dtype, x, ldx: k, k, rows }));
    return `${((rows * k) / seconds / 1e9).toFixed(2)} for ${dtype}`;
  });
  return rates.length === 0 ? '' : `Activations rounded on one thread, G values/s: ${rates.join(', ')}.`;
}

const CACHE_TYPES = ['f32', 'bf16', 'int8'] as const;

const ATTENTION_SHAPES = [
  { rows: 1, context: 192 },
  { rows: 1, context: 2048 },
  { rows: 1, context: 8192 },
  { rows: 128, context: 128 },
  { rows: 128, context: 2048 },
];

/** Attention on one thread: microseconds of a layer with 9 heads of 64 over 3 heads of keys, and GB/s of the cache for one row. */
export function attentionTable(kernels: Kernels, isa: string): string {
  const rows = CACHE_TYPES.map((dtype) => [
    `attention, ${dtype} cache`,
    ...ATTENTION_SHAPES.map((shape) =>
      (processorSeconds(attentionRun(kernels, isa, dtype, shape)) * 1e6).toFixed(0),
    ),
  ]);
  return markdownTable(['microseconds a layer', ...ATTENTION_SHAPES.map(attentionTitle)], rows);
}

function attentionTitle({ rows, context }: (typeof ATTENTION_SHAPES)[number]): string {
  return `${rowsTitle(rows)}, context ${context}`;
}

function attentionRun(
  kernels: Kernels,
  isa: string,
  dtype: (typeof CACHE_TYPES)[number],
  { rows, context }: { rows: number; context: number },
): () => void {
  const [numHeads, kvHeads, headDim, tokensPerBlock] = [9, 3, 64, 32];
  const blocks = Math.ceil(context / tokensPerBlock);
  const bytesPerValue = { f32: 4, bf16: 2, int8: 1 + 4 / headDim }[dtype];
  const fields = {
    ...{ dtype, tokensPerBlock, kvHeads, headDim, numHeads, scale: 0.125 },
    cache: new Uint8Array(blocks * 2 * kvHeads * tokensPerBlock * headDim * bytesPerValue),
    blockTable: Int32Array.from({ length: blocks }, (_, i) => i),
    q: new Float32Array(rows * numHeads * headDim),
    ldq: numHeads * headDim,
    ...{ firstPosition: context - rows, rowBegin: 0, rowEnd: rows },
    y: new Float32Array(rows * numHeads * headDim),
  };
  return () => kernels.attention(isa, fields);
}
