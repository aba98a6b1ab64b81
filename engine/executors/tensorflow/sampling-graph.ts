import { DType, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';
import type { Variable } from './graph/variable.js';

/** Number of tokens that are added up at a time in the search for a token. */
const CHUNK = 256;
/** A number below every finite logit. */
const LEAST = -3.4e38;

/** Names of the sampling graphs' feeds and results; rows are rows of the head's logits. */
export const SAMPLE = {
  rows: 'sample/rows',
  /** For all rows: the most probable token, its logit, and a flag for rows without a number to draw from. */
  best: ['sample/best', 'sample/greatest', 'sample/broken'],
  counts: 'sample/counts',
  mostTokens: 'sample/mostTokens',
  /** Logit and id of the bound at which top-k ends. */
  bounds: ['sample/boundLogit', 'sample/boundId'],
  inverseTemperature: 'sample/inverseTemperature',
  greatest: 'sample/greatestFed',
  least: 'sample/leastFed',
  before: 'sample/beforeFed',
  uniform: 'sample/uniform',
  /**
   * The drawn token, its logit, the total weight of all drawable tokens, and the weight before the token in the order.
   */
  draw: ['sample/token', 'sample/tokenLogit', 'sample/weight'],
  weightBefore: 'sample/weightBefore',
} as const;

/**
 * Draws on the device that holds the logits, like the host's sampler (engine/executors/portable/sampling): the order is by logit,
 * equal ones by id, a bound (logit, id) holds the tokens before it, and the drawn token is the one at which the running sum in
 * ascending id passes its share. Weights are float32, sums are doubles.
 */
export function writeSampling(ops: Ops, logits: Variable, vocabSize: number): void {
  ops.graph.within('sample', () => {
    const rows = ops.graph.placeholder(SAMPLE.rows, DType.int32, [-1]);
    const chosen = ops.gather(logits.read(), rows);
    writeBest(ops, chosen);
    writeBounds(ops, chosen);
    writeDraw(ops, chosen, vocabSize);
  });
}

function writeBest(ops: Ops, chosen: Output): void {
  const [best, greatest, broken] = SAMPLE.best;
  ops.identity(ops.argMax(chosen, 1), DType.int32, best);
  const most = ops.max(chosen, 1);
  ops.identity(most, DType.float, greatest);
  const isOff = ops.or(
    ops.any(ops.isNan(chosen), 1),
    ops.graph.node('LogicalNot', { inputs: [ops.isFinite(most)] }),
  );
  ops.graph.node(
    'Cast',
    { inputs: [isOff], attributes: { SrcT: { type: DType.bool }, DstT: { type: DType.int32 } } },
    broken,
  );
}

function writeBounds(ops: Ops, chosen: Output): void {
  const counts = ops.graph.placeholder(SAMPLE.counts, DType.int32, [-1]);
  const most = ops.graph.placeholder(SAMPLE.mostTokens, DType.int32, []);
  const top = ops.graph.node('TopKV2', {
    inputs: [chosen, most],
    attributes: { sorted: { bool: true }, T: { type: DType.float } },
  });
  const last = ops.sub(counts, ops.int(1), DType.int32);
  const [logit, id] = SAMPLE.bounds;
  ops.identity(ops.pick(top, last), DType.float, logit);
  ops.identity(ops.add(ops.pick(`${top}:1`, last, DType.int32), ops.int(1), DType.int32), DType.int32, id);
}

function writeDraw(ops: Ops, logits: Output, vocabSize: number): void {
  // Rows are filled up to whole chunks, and so to whole vectors, before weights are computed: so a row's weights do not
  // depend on its place.
  const width = Math.ceil(vocabSize / CHUNK) * CHUNK;
  const chosen = width === vocabSize ? logits : ops.pad(logits, [0, width - vocabSize], LEAST);
  const { graph } = ops;
  const fed = (name: string, dtype: DType) => graph.placeholder(name, dtype, [-1]);
  const column = (x: Output, type: DType = DType.float) => ops.expand(x, 1, type);
  const logit = column(fed(SAMPLE.least, DType.float));
  const before = column(fed(SAMPLE.before, DType.int32), DType.int32);
  const greatest = column(fed(SAMPLE.greatest, DType.float));
  const inverse = column(fed(SAMPLE.inverseTemperature, DType.float));
  const ids = graph.constant(
    DType.int32,
    Array.from({ length: width }, (_, id) => id),
    [1, width],
  );
  const weights = ops.exp(ops.mul(ops.sub(chosen, greatest), inverse));
  const held = heldBy(ops, chosen, ids, logit, before);
  const share = splitUniform(ops);
  const drawn = tokenAt(ops, ops.select(held, weights, ops.float(0)), share, width);
  const [token, tokenLogit, weight] = SAMPLE.draw;
  ops.identity(drawn.token, DType.int32, token);
  const ofToken = ops.pick(chosen, drawn.token);
  ops.identity(ofToken, DType.float, tokenLogit);
  graph.node('Cast', { inputs: [drawn.total], attributes: casts(DType.double, DType.float) }, weight);
  const isBefore = heldBy(ops, chosen, ids, column(ofToken), column(drawn.token, DType.int32));
  const sum = doubleSum(ops, ops.sum(inChunks(ops, ops.select(isBefore, weights, ops.float(0)), width), 2));
  graph.node('Cast', { inputs: [sum], attributes: casts(DType.double, DType.float) }, SAMPLE.weightBefore);
}

const casts = (from: DType, to: DType) => ({ SrcT: { type: from }, DstT: { type: to } });

/** True for tokens before the bound: a greater logit, or an equal one with a lower id. */
function heldBy(ops: Ops, logits: Output, ids: Output, logit: Output, before: Output): Output {
  const isLower = ops.and(ops.equal(logits, logit), ops.less(ids, before, DType.int32));
  return ops.or(ops.greater(logits, logit), isLower);
}

/** Random numbers of 53 bits, fed as two integers of 27 and 26 bits. */
function splitUniform(ops: Ops): Output {
  const fed = ops.graph.placeholder(SAMPLE.uniform, DType.int32, [-1, 2]);
  const parts = ops.cast(fed, DType.int32, DType.double);
  const scales = ops.graph.constant(DType.double, [2 ** -27, 2 ** -53], [1, 2]);
  return ops.sum(ops.mul(parts, scales, DType.double), 1, false, DType.double);
}

/** Reshapes [rows, width] to [rows, chunks, CHUNK]. */
const inChunks = (ops: Ops, weights: Output, width: number) =>
  ops.reshape(weights, [-1, width / CHUNK, CHUNK]);

const doubleSum = (ops: Ops, sums: Output) =>
  ops.sum(ops.cast(sums, DType.float, DType.double), 1, false, DType.double);

/** Finds the first token at which the running sum passes its share: first its chunk, then its place in the chunk. */
function tokenAt(ops: Ops, weights: Output, share: Output, width: number): { token: Output; total: Output } {
  const chunked = inChunks(ops, weights, width);
  const sums = ops.cast(ops.sum(chunked, 2), DType.float, DType.double);
  const total = ops.sum(sums, 1, false, DType.double);
  const target = ops.mul(share, total, DType.double);
  const chunk = firstPast(ops, sums, target);
  const running = ops.cumsum(sums, 1, DType.double);
  const until = ops.pick(running, chunk, DType.double);
  const own = ops.pick(sums, chunk, DType.double);
  const rest = ops.sub(target, ops.sub(until, own, DType.double), DType.double);
  const attributes = {
    Tparams: { type: DType.float },
    Tindices: { type: DType.int32 },
    Taxis: { type: DType.int32 },
    batch_dims: { int: 1 },
  };
  const index = ops.expand(chunk, 1, DType.int32);
  const gathered = ops.graph.node('GatherV2', { inputs: [chunked, index, ops.int(1)], attributes });
  const within = ops.cast(ops.reshape(gathered, [-1, CHUNK]), DType.float, DType.double);
  const inChunk = firstPast(ops, within, rest);
  const token = ops.add(ops.mul(chunk, ops.int(CHUNK), DType.int32), inChunk, DType.int32);
  return { token, total };
}

/** Index of the first column with a weight whose running sum is above the target; past the end, the last column with a weight. */
function firstPast(ops: Ops, weights: Output, target: Output): Output {
  const zero = ops.graph.constant(DType.double, [0], []);
  const weighs = ops.greater(weights, zero, DType.double);
  const passes = ops.and(
    ops.greater(ops.cumsum(weights, 1, DType.double), ops.expand(target, 1, DType.double), DType.double),
    weighs,
  );
  const asInts = (x: Output) =>
    ops.graph.node('Cast', { inputs: [x], attributes: casts(DType.bool, DType.int32) });
  const first = ops.argMax(asInts(passes), 1, DType.int32);
  const anyPasses = ops.any(passes, 1);
  // The running count of columns with a weight first reaches its greatest value at the last such column.
  const last = ops.argMax(ops.cumsum(asInts(weighs), 1, DType.int32), 1, DType.int32);
  return ops.select(anyPasses, first, last, DType.int32);
}

export const NO_BOUND = { logit: LEAST, before: 0 };
