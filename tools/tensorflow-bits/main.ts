/**
 * Finds the numbers of rows for which TensorFlow's ops give a row the same bits as among others. The rule in
 * engine/executors/tensorflow/row-rule.ts is made from them. Run it again with a new libtensorflow.
 *
 *     npx tsx tools/tensorflow-bits/main.ts --threads 4                              this processor's kernels
 *     ONEDNN_MAX_CPU_ISA=AVX2 npx tsx tools/tensorflow-bits/main.ts --threads 4      those of AVX2
 *
 * Prints for each op the row counts that give other bits than 48 rows do, first any counts, then those that
 * the rule fills up to: that column has to be empty. The last column distinguishes runs with other threads:
 * equal words, equal bits.
 */
import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { UniformPlan } from '../../engine/executors/cache-layers.js';
import { TILE_ROWS, unitPlaces } from '../../engine/executors/tensorflow/attention-units.js';
import { DType, Graph, type Output } from '../../engine/executors/tensorflow/graph/graph.js';
import { Ops } from '../../engine/executors/tensorflow/graph/ops.js';
import { Variable } from '../../engine/executors/tensorflow/graph/variable.js';
import { loadTensorFlow } from '../../engine/executors/tensorflow/load-tensorflow.js';
import {
  cpuRowDevice,
  filledRows,
  type RowRule,
  rowRuleOf,
} from '../../engine/executors/tensorflow/row-rule.js';
import { type Feed, Session } from '../../engine/executors/tensorflow/session.js';
import { Random } from '../support/random.js';

const { values: flags } = parseArgs({ options: { threads: { type: 'string', default: '2' } } });
const threads = Number(flags.threads);
const tensorflow = loadTensorFlow(threads);
const device = cpuRowDevice();
/** Most rows that share keys: those of a tile with eight heads. */
const MAX_SHARING = 8 * TILE_ROWS;
/** Number of keys in a unit of attention. */
const UNIT_PLACES = unitPlaces(64);
const AMONG = 48;
const MAX_ROWS = 26 * AMONG;
/** Starts at which rows are taken out of all: each row is seen at several places of a product. */
const STARTS = [0, 17, AMONG, 5 * AMONG + 31];
const COUNTS = [
  ...Array.from({ length: 50 }, (_, i) => i + 1),
  ...[60, 72, 96, 108, 144, 216, 252, 300, 504, 768, 960],
];

/** A probed operation: rows of `width` go in, rows of `outputWidth` come out. */
interface Probe {
  name: string;
  width: number;
  outputWidth: number;
  rule: RowRule;
  write(ops: Ops, rows: Output, matrix: Output): Output;
  matrix?: { rows: number; columns: number };
}

/** The rule of a network that has such an op. */
function ruleOf(columns: number, functionWidth: number | null, headDim = 64): RowRule {
  const op = { op: 'softCap', value: 0, cap: 1 };
  const plan = {
    attention: { headDim },
    ops: functionWidth === null ? [] : [op],
    values: [{ rows: 'tokens', width: functionWidth ?? 1, slot: 0 }],
    weights: [{ name: 'w', kind: 'matrix', rows: 1, columns, sources: [] }],
  };
  return rowRuleOf(plan as unknown as UniformPlan, device, { threads, unitPlaces: UNIT_PLACES });
}

function product(rows: number, columns: number): Probe {
  const rule = ruleOf(rows, null);
  const write = (ops: Ops, x: Output, w: Output) => ops.matMul(x, w);
  return {
    name: `MatMul, ${rows} x ${columns}`,
    width: rows,
    outputWidth: columns,
    rule,
    write,
    matrix: { rows, columns },
  };
}

/** A product of attention: the rows that share keys by the keys of a unit. */
function scores(headDim: number): Probe {
  const { attentionRows: multiple, ...others } = ruleOf(headDim, null, headDim);
  const filling = { multiple, least: 1, coarse: 1, coarseFrom: Infinity, most: MAX_SHARING };
  return {
    ...product(headDim, UNIT_PLACES),
    name: `Scores of heads, ${headDim} wide`,
    rule: { ...others, attentionRows: multiple, ...filling },
    // Two products: one alone has the kernels of a product without a batch.
    write: (ops, x, w) => {
      const twice = (one: Output) => ops.concat([ops.expand(one, 0), ops.expand(one, 0)], 0);
      const first = ops.first(ops.batchMatMul(twice(x), twice(w)), [1, -1, UNIT_PLACES]);
      return ops.reshape(first, [-1, UNIT_PLACES]);
    },
  };
}

function ofRows(name: string, width: number, write: Probe['write']): Probe {
  return { name: `${name}, ${width} wide`, width, outputWidth: width, rule: ruleOf(width, width), write };
}

const PRODUCTS = [
  [64, 128],
  [576, 576],
  [576, 3072],
  [576, 8192],
  [1536, 576],
  [1984, 576],
  [2048, 2048],
  [8192, 2048],
] as const;
const FUNCTIONS = [67, 576, 1536].flatMap((width) => [
  ofRows('Exp', width, (ops, x) => ops.exp(x)),
  ofRows('Sigmoid', width, (ops, x) => ops.sigmoid(x)),
  ofRows('Tanh', width, (ops, x) => ops.tanh(x)),
  ofRows('Erf', width, (ops, x) => ops.erf(x)),
  ofRows('Sum of a row', width, (ops, x) => ops.add(x, ops.sum(x, 1, true))),
  ofRows('Mean of squares', width, (ops, x) => ops.add(x, ops.mean(ops.square(x), 1, true))),
]);

interface Found {
  any: number[];
  ruled: number[];
  digest: string;
}

function run({ width, outputWidth, rule, write, matrix = { rows: 1, columns: 1 } }: Probe): Found {
  const graph = new Graph();
  const ops = new Ops(graph);
  const random = new Random(5);
  const numbers = (count: number) => Float32Array.from({ length: count }, () => 4 * random.uniform() - 2);
  const all = numbers(MAX_ROWS * width);
  const shape = [matrix.rows, matrix.columns];
  const variable = new Variable(graph, 'w', { dtype: DType.float, shape });
  ops.group([variable.assign(graph.placeholder('values', DType.float, shape))], 'fill');
  const rows = graph.placeholder('x', DType.float, [-1, width]);
  ops.identity(write(ops, rows, variable.read()), DType.float, 'y');
  const session = new Session(tensorflow, graph);
  const values: Feed = { values: numbers(matrix.rows * matrix.columns), shape };
  session.run({ values }, ['fill']);
  const of = (first: number, count: number, filled = count) => {
    const values = new Float32Array(filled * width);
    values.set(all.subarray(first * width, (first + count) * width));
    return session.run({ x: { values, shape: [filled, width] } }, ['y'])[0]!.subarray(0, count * outputWidth);
  };
  const among = new Float32Array(MAX_ROWS * outputWidth);
  for (let first = 0; first < MAX_ROWS; first += AMONG) among.set(of(first, AMONG), first * outputWidth);
  const differs = (count: number, filled: number) =>
    STARTS.some((first) => {
      const expected = among.subarray(first * outputWidth, (first + count) * outputWidth);
      return of(first, count, filled).some((value, i) => !Object.is(value, expected[i]));
    });
  const any = COUNTS.filter((count) => differs(count, count));
  const ruled = COUNTS.filter((count) => count <= rule.most && differs(count, filledRows(count, rule)));
  session.close();
  const digest = createHash('sha256').update(new Uint8Array(among.buffer)).digest('hex').slice(0, 8);
  return { any, ruled, digest };
}

/** 1-3, 7-9, 60 */
function ranges(counts: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const count of counts) {
    const last = parts.at(-1);
    if (last !== undefined && COUNTS.indexOf(count) === COUNTS.indexOf(last[1]) + 1) last[1] = count;
    else parts.push([count, count]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}

process.stdout.write(
  `TensorFlow ${tensorflow.backend().binding.TF_Version}, ${device}, ${threads} threads\n\n`,
);
process.stdout.write('| op | rows that differ | filled up by the rule | bits |\n|---|---|---|---|\n');
const products = PRODUCTS.map(([rows, columns]) => product(rows, columns));
for (const probe of [...products, ...[8, 16, 32, 64, 128].map(scores), ...FUNCTIONS]) {
  const { any, ruled, digest } = run(probe);
  process.stdout.write(`| ${probe.name} | ${ranges(any) || '-'} | ${ranges(ruled) || '-'} | ${digest} |\n`);
}
