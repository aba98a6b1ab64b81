import { exp, softCapped, sumOf } from './lanes';

/**
 * Attention of the rows of one sequence over its cache (cache.ts), four (row, head) pairs of one KV head at a time:
 *
 *   pairs      4 x headDim        the heads that share a KV head, row by row; what is short of four is computed twice
 *   scores     4 x positions      = pairs x keys, eight positions side by side; what a pair does not see is -infinity
 *   weights    4 x positions      = exp(scores - maximum)
 *   output     4 x headDim        = weights x values / sum of the weights
 *
 * A score that depends on the distance of the two tokens has more products in its chain, or a bias at its end (setRelative).
 *
 * Each score is one chain over the head's columns, each output one over ascending positions, the sum runs in four lanes
 * by position. Positions that a pair does not see add zeros, so that neither the other pairs nor the chunk change a
 * bit.
 */

// Arguments of `attention`: its parts below read them here, outside their innermost loops.
let layer: usize = 0;
let tokensPerBlock: i32 = 0;
let kvHeads: i32 = 0;
let headDim: i32 = 0;
let table: usize = 0;
let sinkBlocks: i32 = 0;
let ringBlocks: i32 = 0;
let sinks: i32 = 0;
let scale: f32 = 0;
let softCap: f32 = 0;
// Tables by which scores depend on distances, 0: none; bytes of their rows, and the column of distance 0.
let biases: usize = 0;
let tableQueries: usize = 0;
let tableKeys: usize = 0;
let tableRow: usize = 0;
let zero: i32 = 0;
// A further score of each head, which has no value; 0: none.
let sinkLogits: usize = 0;
// The positions that the four pairs attend to: [0, sinkEnd) and [from, to), multiples of 8.
let sinkEnd: i32 = 0;
let from: i32 = 0;
let to: i32 = 0;

// Scratch: the four rows of scores, each of scoreBytes, then eight scores of each pair, then the fields of each pair.
let scratch: usize = 0;
let scoreBytes: usize = 0;
let pairs: usize = 0;
const EIGHT: usize = 32;
const PAIR: usize = 28;
// Fields of a pair: pointers to its queries, to its queries for the sinks and to its output, and the positions [begin,
// end) that it sees besides the sinks; bytes from the begin of a table's row to the column of position 0; its
// head.
const QUERY: usize = 0;
const SINK_QUERY: usize = 4;
const OUTPUT: usize = 8;
const BEGIN: usize = 12;
const END: usize = 16;
const COLUMN: usize = 20;
const HEAD: usize = 24;

/** Bytes of scratch for sequences of this many positions. */
export function attentionScratchBytes(positions: i32): usize {
  return 4 * bytesOfScores(positions) + 4 * EIGHT + 4 * PAIR;
}

function bytesOfScores(positions: i32): usize {
  return (<usize>((positions + 7) & ~7)) << 2;
}

/** Pointer to the keys of a KV head in the block that holds a position. */
function keysAt(position: i32, kvHead: i32): usize {
  const block = position / tokensPerBlock;
  const entry = block < sinkBlocks ? block : sinkBlocks + ((block - sinkBlocks) % ringBlocks);
  const index = i32.load(table + ((<usize>entry) << 2)) * kvHeads + kvHead;
  return layer + <usize>index * ((<usize>tokensPerBlock * <usize>headDim) << 3);
}

/**
 * Writes the scores of the four pairs with the eight keys of a panel, the first to `at` and the others each scoreStride
 * on; `field`: which queries.
 */
function scorePanel(field: usize, keys: usize, at: usize, scoreStride: usize): void {
  let q0: usize = load<usize>(pairs + field);
  const apart1 = load<usize>(pairs + PAIR + field) - q0;
  const apart2 = load<usize>(pairs + 2 * PAIR + field) - q0;
  const apart3 = load<usize>(pairs + 3 * PAIR + field) - q0;
  let a0 = f32x4.splat(0);
  let b0 = a0;
  let a1 = a0;
  let b1 = a0;
  let a2 = a0;
  let b2 = a0;
  let a3 = a0;
  let b3 = a0;
  const end = q0 + ((<usize>headDim) << 2);
  for (; q0 < end; q0 += 4, keys += 32) {
    const low = v128.load(keys);
    const high = v128.load(keys, 16);
    let q = v128.load32_splat(q0);
    a0 = f32x4.add(a0, f32x4.mul(q, low));
    b0 = f32x4.add(b0, f32x4.mul(q, high));
    q = v128.load32_splat(q0 + apart1);
    a1 = f32x4.add(a1, f32x4.mul(q, low));
    b1 = f32x4.add(b1, f32x4.mul(q, high));
    q = v128.load32_splat(q0 + apart2);
    a2 = f32x4.add(a2, f32x4.mul(q, low));
    b2 = f32x4.add(b2, f32x4.mul(q, high));
    q = v128.load32_splat(q0 + apart3);
    a3 = f32x4.add(a3, f32x4.mul(q, low));
    b3 = f32x4.add(b3, f32x4.mul(q, high));
  }
  storeScores(at, a0, b0);
  storeScores(at + scoreStride, a1, b1);
  storeScores(at + 2 * scoreStride, a2, b2);
  storeScores(at + 3 * scoreStride, a3, b3);
}

function storeScores(at: usize, low: v128, high: v128): void {
  const factor = f32x4.splat(scale);
  low = f32x4.mul(low, factor);
  high = f32x4.mul(high, factor);
  if (softCap !== 0) {
    low = softCapped(low, softCap);
    high = softCapped(high, softCap);
  }
  v128.store(at, low);
  v128.store(at, high, 16);
}

/** Pointer to a pair's part of a table's row, at the column of a position. */
function columnAt(row: usize, pair: usize, position: i32): usize {
  return row + <usize>(i32.load(pairs + pair * PAIR + COLUMN) + (position << 2));
}

/** Writes the scores of a pair with the eight keys of a panel: for each dimension k (q + query of the distance), then q (its key). */
function scoreRelatively(pair: usize, kvHead: i32, position: i32, keys: usize, at: usize): void {
  const ofHead = <usize>(kvHead * headDim) * tableRow;
  let rowQueries = columnAt(tableQueries + ofHead, pair, position);
  let rowKeys = columnAt(tableKeys + ofHead, pair, position);
  let query = load<usize>(pairs + pair * PAIR + QUERY);
  let low = f32x4.splat(0);
  let high = low;
  const end = query + ((<usize>headDim) << 2);
  for (; query < end; query += 4, keys += 32, rowQueries += tableRow, rowKeys += tableRow) {
    const q = v128.load32_splat(query);
    low = f32x4.add(low, f32x4.mul(v128.load(keys), f32x4.add(q, v128.load(rowQueries))));
    high = f32x4.add(high, f32x4.mul(v128.load(keys, 16), f32x4.add(q, v128.load(rowQueries, 16))));
    low = f32x4.add(low, f32x4.mul(q, v128.load(rowKeys)));
    high = f32x4.add(high, f32x4.mul(q, v128.load(rowKeys, 16)));
  }
  storeScores(at, low, high);
}

function addBiases(pair: usize, kvHead: i32, position: i32, at: usize): void {
  const row = columnAt(biases + <usize>kvHead * tableRow, pair, position);
  v128.store(at, f32x4.add(v128.load(at), v128.load(row)));
  v128.store(at, f32x4.add(v128.load(at, 16), v128.load(row, 16)), 16);
}

function scoreAll(kvHead: i32): void {
  for (let position = from; position < to; ) {
    let keys = keysAt(position, kvHead);
    const inBlock = position % tokensPerBlock;
    keys += (<usize>(inBlock * headDim)) << 2;
    const end = min(to, position + tokensPerBlock - inBlock);
    for (; position < end; position += 8, keys += (<usize>headDim) << 5) {
      const at = scratch + ((<usize>position) << 2);
      if (tableKeys === 0) scorePanel(QUERY, keys, at, scoreBytes);
      else for (let i: usize = 0; i < 4; i++) scoreRelatively(i, kvHead, position, keys, at + i * scoreBytes);
      if (biases !== 0)
        for (let i: usize = 0; i < 4; i++) addBiases(i, kvHead, position, at + i * scoreBytes);
    }
  }
  for (let i = 0; i < 4; i++) hideUnseen(i);
  for (let position = 0; position < sinkEnd; position += 8) scoreSinks(kvHead, position);
}

/** Hides the places of [from, to) that a pair does not see. */
function hideUnseen(pair: usize): void {
  const scores = scratch + pair * scoreBytes;
  const begin = min(i32.load(pairs + pair * PAIR + BEGIN), to);
  const end = i32.load(pairs + pair * PAIR + END);
  for (let t = from; t < begin; t++) f32.store(scores + ((<usize>t) << 2), -f32.POSITIVE_INFINITY);
  for (let t = max(end, from); t < to; t++) f32.store(scores + ((<usize>t) << 2), -f32.POSITIVE_INFINITY);
}

/** Writes the scores of the sinks among eight positions, with queries rotated to their places in the cache. */
function scoreSinks(kvHead: i32, position: i32): void {
  const eight = scratch + 4 * scoreBytes;
  const keys = keysAt(position, kvHead) + ((<usize>((position % tokensPerBlock) * headDim)) << 2);
  scorePanel(SINK_QUERY, keys, eight, EIGHT);
  for (let i: usize = 0; i < 4; i++) {
    const end = i32.load(pairs + i * PAIR + END);
    for (let j = 0; j < 8; j++) {
      const t = position + j;
      const at = scratch + i * scoreBytes + ((<usize>t) << 2);
      if (t < sinks && t < end) f32.store(at, f32.load(eight + i * EIGHT + ((<usize>j) << 2)));
      else if (t < sinks || t < from) f32.store(at, -f32.POSITIVE_INFINITY);
    }
  }
}

/** Turns scores into weights and returns their sum. A score that is NaN makes all of them NaN. */
function weigh(pair: usize): f32 {
  const scores = scratch + pair * scoreBytes;
  let most = f32x4.splat(-f32.POSITIVE_INFINITY);
  most = greatest(scores, 0, min(sinkEnd, from), most);
  most = greatest(scores, from, to, most);
  let maximum: f32 = max(
    max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)),
    max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)),
  );
  let logit: f32 = 0;
  if (sinkLogits) {
    logit = f32.load(sinkLogits + ((<usize>i32.load(pairs + pair * PAIR + HEAD)) << 2));
    maximum = max(maximum, logit);
  }
  const shift = f32x4.splat(maximum);
  let sum = f32x4.splat(0);
  sum = exponentials(scores, 0, min(sinkEnd, from), shift, sum);
  sum = exponentials(scores, from, to, shift, sum);
  if (!sinkLogits) return sumOf(sum);
  return sumOf(sum) + f32x4.extract_lane(exp(f32x4.splat(logit - maximum)), 0);
}

function greatest(scores: usize, begin: i32, end: i32, most: v128): v128 {
  const last = scores + ((<usize>end) << 2);
  for (let at = scores + ((<usize>begin) << 2); at < last; at += 16) most = f32x4.max(most, v128.load(at));
  return most;
}

function exponentials(scores: usize, begin: i32, end: i32, shift: v128, sum: v128): v128 {
  const last = scores + ((<usize>end) << 2);
  for (let at = scores + ((<usize>begin) << 2); at < last; at += 16) {
    const weight = exp(f32x4.sub(v128.load(at), shift));
    v128.store(at, weight);
    sum = f32x4.add(sum, weight);
  }
  return sum;
}

// The eight columns of the four outputs that are being summed.
let a0: v128 = i64x2.splat(0);
let b0: v128 = i64x2.splat(0);
let a1: v128 = i64x2.splat(0);
let b1: v128 = i64x2.splat(0);
let a2: v128 = i64x2.splat(0);
let b2: v128 = i64x2.splat(0);
let a3: v128 = i64x2.splat(0);
let b3: v128 = i64x2.splat(0);

/** Adds weights x values of positions [begin, end), eight columns from `column` on. */
function addValues(kvHead: i32, column: i32, begin: i32, end: i32): void {
  let x0 = a0;
  let y0 = b0;
  let x1 = a1;
  let y1 = b1;
  let x2 = a2;
  let y2 = b2;
  let x3 = a3;
  let y3 = b3;
  const row = (<usize>headDim) << 2;
  const headBytes = (<usize>tokensPerBlock * row) << 1;
  const apart1 = scoreBytes;
  const apart2: usize = 2 * scoreBytes;
  const apart3: usize = 3 * scoreBytes;
  for (let position = begin; position < end; ) {
    const inBlock = position % tokensPerBlock;
    let values = keysAt(position, kvHead) + (headBytes >> 1) + ((<usize>(inBlock * headDim + column)) << 2);
    const stop = min(end, position + tokensPerBlock - inBlock);
    let weights = scratch + ((<usize>position) << 2);
    const last = scratch + ((<usize>stop) << 2);
    for (; weights < last; weights += 4, values += row) {
      const low = v128.load(values);
      const high = v128.load(values, 16);
      let w = v128.load32_splat(weights);
      x0 = f32x4.add(x0, f32x4.mul(w, low));
      y0 = f32x4.add(y0, f32x4.mul(w, high));
      w = v128.load32_splat(weights + apart1);
      x1 = f32x4.add(x1, f32x4.mul(w, low));
      y1 = f32x4.add(y1, f32x4.mul(w, high));
      w = v128.load32_splat(weights + apart2);
      x2 = f32x4.add(x2, f32x4.mul(w, low));
      y2 = f32x4.add(y2, f32x4.mul(w, high));
      w = v128.load32_splat(weights + apart3);
      x3 = f32x4.add(x3, f32x4.mul(w, low));
      y3 = f32x4.add(y3, f32x4.mul(w, high));
    }
    position = stop;
  }
  a0 = x0;
  b0 = y0;
  a1 = x1;
  b1 = y1;
  a2 = x2;
  b2 = y2;
  a3 = x3;
  b3 = y3;
}

function clearSums(): void {
  const zero = f32x4.splat(0);
  a0 = zero;
  b0 = zero;
  a1 = zero;
  b1 = zero;
  a2 = zero;
  b2 = zero;
  a3 = zero;
  b3 = zero;
}

function storeOutput(pair: usize, column: i32, low: v128, high: v128, sum: f32): void {
  const at = load<usize>(pairs + pair * PAIR + OUTPUT) + ((<usize>column) << 2);
  const divisor = f32x4.splat(sum);
  v128.store(at, f32x4.div(low, divisor));
  v128.store(at, f32x4.div(high, divisor), 16);
}

/** Computes one column beyond the last whole eight. */
function outputColumn(kvHead: i32, pair: usize, column: i32, sum: f32): void {
  const values = (<usize>tokensPerBlock * <usize>headDim) << 2;
  const weights = scratch + pair * scoreBytes;
  let total: f32 = 0;
  for (let range = 0; range < 2; range++) {
    const end = range === 0 ? min(sinkEnd, from) : to;
    for (let t = range === 0 ? 0 : from; t < end; t++) {
      const value = keysAt(t, kvHead) + values + ((<usize>((t % tokensPerBlock) * headDim + column)) << 2);
      total += f32.load(weights + ((<usize>t) << 2)) * f32.load(value);
    }
  }
  f32.store(load<usize>(pairs + pair * PAIR + OUTPUT) + ((<usize>column) << 2), total / sum);
}

function tile(kvHead: i32): void {
  scoreAll(kvHead);
  const sum0 = weigh(0);
  const sum1 = weigh(1);
  const sum2 = weigh(2);
  const sum3 = weigh(3);
  let column = 0;
  for (; column + 8 <= headDim; column += 8) {
    clearSums();
    addValues(kvHead, column, 0, min(sinkEnd, from));
    addValues(kvHead, column, from, to);
    storeOutput(0, column, a0, b0, sum0);
    storeOutput(1, column, a1, b1, sum1);
    storeOutput(2, column, a2, b2, sum2);
    storeOutput(3, column, a3, b3, sum3);
  }
  for (; column < headDim; column++) {
    outputColumn(kvHead, 0, column, sum0);
    outputColumn(kvHead, 1, column, sum1);
    outputColumn(kvHead, 2, column, sum2);
    outputColumn(kvHead, 3, column, sum3);
  }
}

/**
 * Sets the cache that `attention` reads from now on: a layer of the pool, and a sequence's blocks in it.
 *
 * @param blocks the sequence's table, i32 each. Entry b is block b if b < sinkBlocks, else the blocks take turns.
 */
export function setCache(
  base: usize,
  blockTokens: i32,
  heads: i32,
  headWidth: i32,
  blocks: usize,
  sinkEntries: i32,
  ringEntries: i32,
): void {
  layer = base;
  tokensPerBlock = blockTokens;
  kvHeads = heads;
  headDim = headWidth;
  table = blocks;
  sinkBlocks = sinkEntries;
  ringBlocks = ringEntries;
}

/**
 * Sets the table of distances that `attention` reads from now on; one of products has both queries and keys, and 0 is none.
 *
 * @param columns floats of a row; origin: the column of distance 0, of a key at its query's own position
 */
export function setRelative(
  ofBiases: usize,
  ofQueries: usize,
  ofKeys: usize,
  columns: i32,
  origin: i32,
): void {
  biases = ofBiases;
  tableQueries = ofQueries;
  tableKeys = ofKeys;
  tableRow = (<usize>columns) << 2;
  zero = origin;
}

/** Sets the further score of each head, [kvHeads * group], that `attention` reads from now on; 0: there is none. */
export function setSinkLogits(logits: usize): void {
  sinkLogits = logits;
}

/**
 * @param qkv queries of the first row; `stride` floats between rows
 * @param sinkQueries the queries rotated to the rows' places in the cache, rows of group * kvHeads * headDim; read if
 *   numSinks > 0
 * @param group heads that share a KV head
 * @param first position of the first row. Row i sees positions up to first + i, or both ways all from `start` to `length` (0: causal)
 * @param recent number of positions that a row sees up to its own, which is one of them, besides the first
 * numSinks; all: 2^31 - 1
 * @param ahead number of those that it sees from its own on, if it sees both ways; all: 2^31 - 1
 * @param cap 0: none
 * @param room scratch of attentionScratchBytes for the longest sequence; `positions`: the length of that sequence
 * @param output rows of group * kvHeads * headDim
 */
export function attention(
  qkv: usize,
  stride: i32,
  sinkQueries: usize,
  group: i32,
  rows: i32,
  first: i32,
  start: i32,
  length: i32,
  recent: i32,
  ahead: i32,
  numSinks: i32,
  factor: f32,
  cap: f32,
  room: usize,
  positions: i32,
  output: usize,
): void {
  sinks = numSinks;
  scale = factor;
  softCap = cap;
  scratch = room;
  scoreBytes = bytesOfScores(positions);
  pairs = room + 4 * scoreBytes + 4 * EIGHT;
  const width = group * kvHeads * headDim;
  const numPairs = rows * group;
  for (let kvHead = 0; kvHead < kvHeads; kvHead++) {
    for (let p = 0; p < numPairs; p += 4) {
      let least = i32.MAX_VALUE;
      let most = 0;
      for (let i = 0; i < 4; i++) {
        const pair = min(p + i, numPairs - 1);
        const row = pair / group;
        const column = (kvHead * group + (pair - row * group)) * headDim;
        const at = pairs + <usize>i * PAIR;
        const own = first + row + 1;
        const begin = max(start, own - recent);
        const end = length === 0 ? own : ahead < length ? min(length, own + ahead - 1) : length;
        i32.store(at + QUERY, <i32>qkv + ((row * stride + column) << 2));
        i32.store(at + SINK_QUERY, <i32>sinkQueries + ((row * width + column) << 2));
        i32.store(at + OUTPUT, <i32>output + ((row * width + column) << 2));
        i32.store(at + BEGIN, begin);
        i32.store(at + END, end);
        i32.store(at + COLUMN, (zero + 1 - own) << 2);
        i32.store(at + HEAD, kvHead * group + (pair - row * group));
        least = min(least, begin);
        most = max(most, end);
      }
      to = (most + 7) & ~7;
      from = min(max(least, sinks) & ~7, to);
      sinkEnd = min((sinks + 7) & ~7, to);
      tile(kvHead);
    }
  }
}
