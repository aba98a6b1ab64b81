import { readFileSync } from 'node:fs';
import type { NetworkPlan, PlanOp } from '../../../network/plan.js';
import { expertWidth } from '../../../network/products.js';
import type { UniformPlan } from '../cache-layers.js';
import { TensorFlowError } from './load-tensorflow.js';

/** Rule by which a step is cut and filled up so that a row has the same bits whatever else is in the step. */
export interface RowRule {
  /**
   * The number of rows in a product is a multiple of `multiple`, at least `least`; above `coarseFrom` it is a multiple of
   * `coarse`.
   */
  multiple: number;
  least: number;
  coarse: number;
  coarseFrom: number;
  /** Most rows of a step; larger batches run as several steps. An encoder's sequence is never cut, and has a step of its own. */
  most: number;
  /**
   * The number of rows in one product of attention (the heads of a row or a tile that share keys) is a multiple of
   * this.
   */
  attentionRows: number;
  /** The number of attention's products in a step is a multiple of this. */
  attentionProducts: number;
}

/**
 * Kernels that compute: oneDNN's of this width on a CPU; any: equal bits are not asked for, or the kernels are unknown.
 */
export type RowDevice = 'avx512' | 'avx2' | 'any';

/** Number of elements computed at once; a function of the remainder may be rounded otherwise. */
const VECTOR = 16;
/** Sums of at least this many terms are computed in parts; with more than MAX_LONG rows the parts have another size. */
const LONG_SUM = 1984;
const MAX_LONG = 96;
/** Number of rows that AVX2's kernels take at a time; a remainder of 1 to 3 rows is rounded otherwise. */
const AVX2_ROWS = 6;
/** Most multiplications of one of attention's products that AVX2 leaves to a kernel for small products. */
const AVX2_SMALL_PRODUCT = 2 ** 14;
/** Most threads that part the columns of 12 rows and more alike; with more threads only one number of rows is safe. */
const AVX2_THREADS = 4;
/**
 * Most rows that one thread computes alone; more are shared by the threads. 72 rows are whole sixes for as many threads
 * as divide it.
 */
const AVX2_ALONE = 48;
const AVX2_SHARED = 72;

/**
 * Numbers of rows for which a row's bits do not depend on the others, as tools/tensorflow-bits measures them for TensorFlow
 * 2.21 (oneDNN 3):
 *
 *   AVX-512   one row alone has kernels of its own; sums of 2000 terms are parted otherwise from about 100 rows on
 *   AVX2      what is left over of six rows, also where threads part the rows among them; 6 rows shared by 2 to 4 threads,
 *             and most numbers of rows shared by more; from 264 rows on other kernels; small products of attention
 *
 * No GPU has been measured, and nothing is promised there.
 */
export function rowRuleOf(
  plan: UniformPlan,
  device: RowDevice,
  { threads, unitPlaces }: { threads: number; unitPlaces: number },
): RowRule {
  const ofFunctions = vectorRows(plan);
  if (device === 'any') return { ...anyRows(1, 4), most: Infinity, attentionRows: 1, attentionProducts: 1 };
  if (device === 'avx512') {
    const multiple = ofFunctions;
    const least = upTo(4, multiple);
    const longest = Math.max(...plan.weights.map(({ kind, columns }) => (kind === 'matrix' ? columns : 0)));
    const most = longest > LONG_SUM ? downTo(MAX_LONG, multiple) : Infinity;
    return { ...anyRows(multiple, least), most, attentionRows: 1, attentionProducts: 1 };
  }
  const multiple = leastCommonMultiple(AVX2_ROWS, ofFunctions);
  const coarse = leastCommonMultiple(AVX2_SHARED, ofFunctions);
  return {
    multiple,
    least: avx2Least(multiple, threads),
    coarse,
    coarseFrom: AVX2_ALONE,
    most: avx2Most(coarse, threads),
    attentionRows: upTo(
      Math.floor(AVX2_SMALL_PRODUCT / (unitPlaces * plan.attention.headDim)) + 1,
      AVX2_ROWS,
    ),
    attentionProducts: threads,
  };
}

const anyRows = (multiple: number, least: number) => ({
  multiple,
  least,
  coarse: multiple,
  coarseFrom: Infinity,
});

/** Least rows of a step: threads part the columns of few rows otherwise than those of many. */
function avx2Least(multiple: number, threads: number): number {
  if (threads === 1) return multiple;
  return upTo(threads <= AVX2_THREADS ? 2 * AVX2_ROWS : AVX2_ALONE, multiple);
}

/** Most rows of a step: if threads share a product's rows, each must have whole sixes of them. */
function avx2Most(coarse: number, threads: number): number {
  return threads <= AVX2_THREADS ? downTo(216, coarse) : AVX2_ALONE;
}

/** Number of rows in a product of `rows`, filled up by the rule. */
export function filledRows(rows: number, { multiple, least, coarse, coarseFrom }: RowRule): number {
  return Math.max(least, upTo(rows, rows > coarseFrom ? coarse : multiple));
}

/**
 * Number of rows whose values fill whole vectors, in each value to which a function other than a sum or a product is
 * applied: 1 if widths are a multiple of a vector, as in nearly all models.
 */
function vectorRows(plan: NetworkPlan): number {
  const { ops, values } = plan;
  const widths = ops.flatMap((op: PlanOp) => {
    if (op.op === 'softCap' || op.op === 'xielu') return [values[op.value]!.width];
    if (op.op === 'experts') {
      // Shares are exponentials of the scores.
      return [values[op.scores]!.width, ...(hasFunction(op) ? [expertWidth(op, plan)] : [])];
    }
    if (op.op === 'gate' && op.activation !== 'none') return [op.columns / (op.per ?? 1)];
    const isFunction = (op.op === 'linear' || op.op === 'gatedLinear') && op.activation !== 'none';
    return isFunction ? [values[op.output]!.width] : [];
  });
  return widths.reduce(
    (rows, width) => leastCommonMultiple(rows, VECTOR / greatestCommonDivisor(VECTOR, width)),
    1,
  );
}

const hasFunction = ({ activation, clamped }: Extract<PlanOp, { op: 'experts' }>) =>
  activation !== 'none' || clamped !== undefined;

/**
 * Values of SKEIN_TENSORFLOW_ROWS: 'own' makes each row's bits independent of other rows, 'free' takes the fastest way.
 */
const ROWS = ['own', 'free'];

/** The kernels that oneDNN chooses here, by the processor and by its environment variables. @throws TensorFlowError */
export function cpuRowDevice(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  flags = processorFlags(),
): RowDevice {
  const { SKEIN_TENSORFLOW_ROWS: rows = 'own' } = environment;
  if (!ROWS.includes(rows))
    throw new TensorFlowError(`SKEIN_TENSORFLOW_ROWS is "${rows}"; it must be ${ROWS.join(' or ')}.`);
  if (rows === 'free') return 'any';
  const allowed = environment.ONEDNN_MAX_CPU_ISA ?? environment.DNNL_MAX_CPU_ISA;
  const allows = !allowed || /^(ALL|DEFAULT|.*AVX512.*|.*AVX10.*)$/i.test(allowed);
  const isOneDnn = environment.TF_ENABLE_ONEDNN_OPTS !== '0';
  const has = ['avx512f', 'avx512bw', 'avx512dq', 'avx512vl'].every((flag) => flags.has(flag));
  return has && allows && isOneDnn ? 'avx512' : 'avx2';
}

/** The processor's features as Linux lists them. Elsewhere they are unknown, and the narrower kernels are assumed. */
function processorFlags(): ReadonlySet<string> {
  try {
    const line = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
    return new Set(line.trim().split(/\s+/));
  } catch {
    return new Set();
  }
}

const upTo = (count: number, multiple: number) => Math.ceil(count / multiple) * multiple;
const downTo = (count: number, multiple: number) =>
  Math.max(multiple, Math.floor(count / multiple) * multiple);

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function leastCommonMultiple(a: number, b: number): number {
  return (a / greatestCommonDivisor(a, b)) * b;
}
