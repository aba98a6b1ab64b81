import type { KvDtype } from '../../kvcache/cache-shape.js';
import { headsOf } from '../../network/cache-layers.js';
import type { Activation, NetworkPlan, PlanOp, TurnedNorms, Xielu } from '../../network/plan.js';
import { roundToBf16 } from '../../tools/support/bf16.js';
import { throughQuants } from './kv-quants.js';
import { naiveDelta } from './naive-delta.js';
import { naiveShares } from './naive-experts.js';
import { naiveScan } from './naive-scan.js';

/** Rounding of the cache and of products. */
export interface NaiveOptions {
  kvDtype: KvDtype;
  /** [rotaryDim / 2] */
  inverseFrequencies: Float32Array;
  ropeScale: number;
  /** True: products round their input to bf16, as AVX-512 BF16 does with bf16 weights. Default: false. */
  roundsInputs?: boolean;
  /** True: attention rounds queries and probabilities to bf16, as AVX-512 BF16 does with a bf16 cache. */
  roundsAttention?: boolean;
  /** Tokens that a token attends to, the `sinks` first ones of the sequence among them; absent: all. */
  window?: { tokens: number; sinks: number };
  /** The prompt's own rows, by place; absent: there are none. */
  promptRows?: ReadonlyMap<number, Float32Array>;
  /** Position of each token in time, height and width; absent: its place. */
  gridPositions?: readonly (readonly [number, number, number])[];
  /** Places [start, end) of pictures whose tokens attend to all of them; absent: there are none. */
  pictures?: readonly (readonly [start: number, end: number])[];
  /** Rows that rowInput reads, and the list that keepRows adds its rows to. */
  rowInputs?: Matrix;
  keptRows?: Matrix;
}

type Matrix = Float64Array[];
type ExpertsOp = Extract<PlanOp, { op: 'experts' }>;
type AttentionOp = Extract<PlanOp, { op: 'attention' }>;

/** Greatest difference of any logit of a sequence's positions; Infinity where one is NaN, which must not pass as small. */
export function greatestError(
  found: readonly ArrayLike<number>[],
  expected: readonly ArrayLike<number>[],
): number {
  let greatest = 0;
  for (const [position, row] of expected.entries()) {
    for (let i = 0; i < row.length; i++) {
      const error = Math.abs(found[position]![i]! - row[i]!);
      if (!(error <= greatest)) greatest = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
    }
  }
  return greatest;
}

/**
 * A NetworkPlan read literally, in double precision, one whole sequence at a time: no pages, no batches, no chunks.
 * Returns the logits of every position.
 */
export function naiveLogits(
  plan: NetworkPlan,
  weights: ReadonlyMap<string, Float32Array>,
  tokens: readonly number[],
  options: NaiveOptions,
): Matrix {
  const values: Matrix[] = plan.values.map(() => []);
  /** Queries of the running layer, rotated to the rows' positions in the cache; they serve the scores of the sinks. */
  const sinkQueries: Matrix = [];
  /** Keys and values of each layer as its cache has them. */
  const kept: Matrix[] = [];
  for (const op of plan.ops) runOp(op);
  return values[plan.logits]!;

  function runOp(op: PlanOp): void {
    switch (op.op) {
      case 'embedding': {
        const table = weights.get(op.weight)!;
        const width = plan.values[op.output]!.width;
        values[op.output] = tokens.map((token, place) => {
          const own = options.promptRows?.get(place);
          if (own !== undefined) return Float64Array.from(own.subarray(0, width));
          return Float64Array.from(
            table.subarray(token * width, (token + 1) * width),
            (x) => x * (op.scale ?? 1),
          );
        });
        break;
      }
      case 'addPromptRows':
        for (const [place, row] of values[op.value]!.entries()) {
          const own = options.promptRows?.get(place);
          if (own !== undefined) for (let i = 0; i < row.length; i++) row[i]! += own[op.first + i]!;
        }
        break;
      case 'addEmbedding': {
        if (op.by !== 'tokenIds') throw new Error(`${op.by} are looked up by encoders and GPT-2.`);
        const table = weights.get(op.weight)!;
        for (const [r, row] of values[op.output]!.entries())
          for (let i = 0; i < row.length; i++)
            row[i]! += table[tokens[r]! * row.length + i]! * (op.scale ?? 1);
        break;
      }
      case 'join':
        values[op.output] = values[op.input]!.map((row, r) =>
          Float64Array.from([...row, ...values[op.other]![r]!]),
        );
        break;
      case 'rowInput':
        values[op.output] = options.rowInputs!.map((row) => Float64Array.from(row));
        break;
      case 'keepRows':
        options.keptRows?.push(...values[op.input]!.map((row) => Float64Array.from(row)));
        break;
      case 'rmsNorm':
        values[op.output] = values[op.input]!.map((row, r) => {
          const normed = rmsNorm(row, weights.get(op.weight)!, op.epsilon);
          return op.residual === undefined ? normed : normed.map((y, i) => y + values[op.residual!]![r]![i]!);
        });
        break;
      case 'rmsNormHeads':
        for (const row of values[op.value]!) {
          const scales = op.weight === null ? new Float32Array(op.columns).fill(1) : weights.get(op.weight)!;
          for (let head = 0; head < op.heads; head++) {
            const begin = op.first + head * scales.length;
            row.set(rmsNorm(row.slice(begin, begin + scales.length), scales, op.epsilon), begin);
          }
        }
        break;
      case 'layerNormHeads': {
        const scales = weights.get(op.weight)!;
        const width = scales.length / op.heads;
        for (const row of values[op.value]!)
          for (let at = 0; at < scales.length; at += width) {
            const head = row.subarray(op.first + at, op.first + at + width);
            head.set(layerNorm(head, scales.subarray(at, at + width), op.epsilon));
          }
        break;
      }
      case 'xielu':
        values[op.value] = values[op.value]!.map((row) => row.map((x) => xielu(x, op)));
        break;
      case 'gate':
        for (const [r, row] of values[op.value]!.entries()) {
          const factors = values[op.by]![r]!.slice(op.byFirst, op.byFirst + op.columns);
          for (const [i, factor] of factors.entries()) row[op.first + i]! *= activate(factor, op.activation);
        }
        break;
      case 'shortConv':
        values[op.output] = convolved(values[op.input]!, op);
        break;
      case 'gatedDelta':
        values[op.output] = deltaRule(values[op.qkv]!, values[op.gates]!, op);
        break;
      case 'selectiveScan':
        values[op.output] = scanned(values[op.input]!, values[op.steps]!, op);
        break;
      case 'scale':
        for (const row of values[op.value]!)
          for (let i = op.first; i < op.first + op.columns; i++) row[i]! *= op.factor;
        break;
      case 'clamp':
        for (const row of values[op.value]!)
          for (let i = op.first; i < op.first + op.columns; i++)
            row[i] = Math.min(Math.max(row[i]!, op.least), op.most);
        break;
      case 'softCap':
        values[op.value] = values[op.value]!.map((row) => row.map((x) => op.cap * Math.tanh(x / op.cap)));
        break;
      case 'linear': {
        const before = op.residual === null ? null : values[op.residual]!;
        const product = linear(values[op.input]!, op.weight, op.bias);
        values[op.output] = product.map((row, r) =>
          row.map((y, i) => activate(y, op.activation) + (before ? before[r]![i]! : 0)),
        );
        break;
      }
      case 'gatedLinear': {
        const width = plan.values[op.output]!.width;
        values[op.output] = linear(values[op.input]!, op.weight, op.bias).map((row) =>
          row.slice(0, width).map((gate, i) => activate(gate, op.activation) * row[width + i]!),
        );
        break;
      }
      case 'experts':
        values[op.output] = values[op.input]!.map((row, r) => mixture(op, row, r));
        break;
      case 'ropeAndCache':
        for (const [position, row] of values[op.qkv]!.entries()) {
          const frequencies =
            op.table === undefined ? options.inverseFrequencies : plan.attention.ropeTables![op.table]!;
          sinkQueries[position] = row.slice();
          const grid = op.table === undefined ? options.gridPositions?.[position] : undefined;
          const axes = plan.attention.ropeAxes;
          const turnsBy = (i: number) => grid?.[axes?.[i] ?? 0] ?? position;
          rotate(sinkQueries[position]!, () => cachePosition(position), frequencies, op.layer);
          rotate(row, turnsBy, frequencies, op.layer);
          if (op.norms === undefined) continue;
          for (const turned of [sinkQueries[position]!, row]) normTurned(turned, op.norms, op.layer);
        }
        break;
      case 'attention':
        values[op.output] = attended(values[op.qkv]!, op);
        break;
      case 'selectRows':
        values[op.output] = values[op.input]!;
        break;
      default:
        throw new Error(
          `${op.op} is an op of encoders, which are judged by test/reference/encoders.test.ts.`,
        );
    }
  }

  function convolved(input: Matrix, op: Extract<PlanOp, { op: 'shortConv' }>): Matrix {
    const [weight, bias] = [weights.get(op.weight)!, op.bias === null ? null : weights.get(op.bias)!];
    return input.map((_, t) =>
      Float64Array.from({ length: weight.length / op.taps }, (_, column) => {
        let sum = bias?.[column] ?? 0;
        for (let tap = 0; tap < op.taps; tap++) {
          const before = input[t - op.taps + 1 + tap];
          if (before) sum += weight[column * op.taps + tap]! * before[op.first + column]!;
        }
        return activate(sum, op.activation);
      }),
    );
  }

  function deltaRule(qkv: Matrix, gates: Matrix, op: Extract<PlanOp, { op: 'gatedDelta' }>): Matrix {
    const { keyHeads, valueHeads, keyDim, valueDim } = op;
    const output = qkv.map(() => new Float64Array(valueHeads * valueDim));
    for (let head = 0; head < valueHeads; head++) {
      const decay = weights.get(op.decay)![head]!;
      const numbers = {
        decay: op.rates ? Math.log(-decay) : decay,
        decayBias: weights.get(op.decayBias)![head]!,
      };
      const keyHead = op.tiled ? head % keyHeads : Math.floor(head / (valueHeads / keyHeads));
      const part = (row: Float64Array, first: number, length: number) => row.subarray(first, first + length);
      const tokens = qkv.map((row, t) => ({
        q: part(row, keyHead * keyDim, keyDim),
        k: part(row, (keyHeads + keyHead) * keyDim, keyDim),
        v: part(row, 2 * keyHeads * keyDim + head * valueDim, valueDim),
        b: gates[t]![head]!,
        a: gates[t]![valueHeads + head]!,
      }));
      const state = new Float64Array(keyDim * valueDim);
      for (const [t, row] of naiveDelta(tokens, { ...numbers, epsilon: op.epsilon }, state).entries())
        output[t]!.set(row, head * valueDim);
    }
    return output;
  }

  function scanned(input: Matrix, steps: Matrix, op: Extract<PlanOp, { op: 'selectiveScan' }>): Matrix {
    const { heads, headDim, groups, stateDim, leastStep, mostStep } = op;
    const output = input.map(() => new Float64Array(heads * headDim));
    const number = (name: string, head: number) => weights.get(name)![head]!;
    for (let head = 0; head < heads; head++) {
      const group = Math.floor(head / (heads / groups));
      const part = (row: Float64Array, first: number, length: number) => row.subarray(first, first + length);
      const tokens = input.map((row, t) => ({
        x: part(row, head * headDim, headDim),
        b: part(row, heads * headDim + group * stateDim, stateDim),
        c: part(row, heads * headDim + (groups + group) * stateDim, stateDim),
        step: steps[t]![op.stepsFirst + head]!,
      }));
      const decay = number(op.decay, head);
      const numbers = {
        rate: op.rates ? decay : -Math.exp(decay),
        stepBias: number(op.stepBias, head),
        skip: number(op.skip, head),
        leastStep,
        mostStep,
      };
      const rows = naiveScan(tokens, numbers, new Float64Array(stateDim * headDim));
      for (const [t, row] of rows.entries()) output[t]!.set(row, head * headDim);
    }
    return output;
  }

  function mixture(op: ExpertsOp, row: Float64Array, r: number): Float64Array {
    const output = new Float64Array(plan.values[op.output]!.width);
    const bias = op.choiceBias === undefined ? null : weights.get(op.choiceBias)!;
    const scales = op.shareScales === undefined ? null : weights.get(op.shareScales)!;
    for (const { expert, share } of naiveShares(values[op.scores]![r]!, op, bias)) {
      const [both] = linear([row], op.gateUp[expert]!, op.biases?.gateUp[expert] ?? null);
      const [down] = linear([raised(both!, op)], op.down[expert]!, op.biases?.down[expert] ?? null);
      for (let i = 0; i < output.length; i++) output[i]! += share * (scales?.[expert] ?? 1) * down![i]!;
    }
    const before = op.residual === null ? null : values[op.residual]![r]!;
    return output.map((y, i) => y + (before ? before[i]! : 0));
  }

  function linear(input: Matrix, name: string, biasName: string | null): Matrix {
    const weight = weights.get(name)!;
    const bias = biasName === null ? null : weights.get(biasName)!;
    return input.map((row) => {
      // The scores of experts are made by matrices in f32, for which nothing is rounded.
      const rounds = options.roundsInputs === true && !name.endsWith('router');
      const x = rounds ? row.map((value) => roundToBf16(value)) : row;
      const y = new Float64Array(weight.length / x.length);
      for (let n = 0; n < y.length; n++) {
        let sum = bias ? bias[n]! : 0;
        for (let k = 0; k < x.length; k++) sum += x[k]! * weight[n * x.length + k]!;
        y[n] = sum;
      }
      return y;
    });
  }

  function rotate(
    row: Float64Array,
    turnsBy: (i: number) => number,
    frequencies: ArrayLike<number>,
    layer: number,
  ): void {
    const numHeads = headsOf(plan.attention, layer);
    const { kvHeads: numKvHeads, keyDim: headDim } = plan.caches[layer]!;
    const half = frequencies.length;
    const turned = Math.min(numHeads + numKvHeads, row.length / headDim);
    for (let head = 0; head < turned; head++) {
      for (let i = 0; i < half; i++) {
        const angle = Math.fround(turnsBy(i) * Math.fround(frequencies[i]!));
        const cosine = Math.cos(angle) * options.ropeScale;
        const sine = Math.sin(angle) * options.ropeScale;
        const a = row[head * headDim + i]!;
        const b = row[head * headDim + i + half]!;
        row[head * headDim + i] = a * cosine - b * sine;
        row[head * headDim + i + half] = b * cosine + a * sine;
      }
    }
  }

  function normTurned(row: Float64Array, { query, key, epsilon }: TurnedNorms, layer: number): void {
    const { kvHeads, keyDim } = plan.caches[layer]!;
    const numHeads = headsOf(plan.attention, layer);
    const heads = Math.min(numHeads + kvHeads, row.length / keyDim);
    for (let head = 0; head < heads; head++) {
      const scales = weights.get(head < numHeads ? query : key)!;
      const own = row.subarray(head * keyDim, (head + 1) * keyDim);
      own.set(rmsNorm(own, scales, epsilon));
    }
  }

  function cachePosition(position: number): number {
    return options.window ? Math.min(position, options.window.tokens - 1) : position;
  }

  function isSeen(s: number, t: number, own = t + 1): boolean {
    const { window } = options;
    if (t - s >= own) return false;
    return !window || s < window.sinks || t - s < window.tokens - window.sinks;
  }

  /** The last place that the token at place t sees. */
  function lastSeen(t: number, { mask }: AttentionOp): number {
    const own = mask?.withinPictures
      ? options.pictures?.find(([start, end]) => start <= t && t < end)
      : undefined;
    return own === undefined ? t : own[1] - 1;
  }

  function attended(qkv: Matrix, op: AttentionOp): Matrix {
    if (!op.queriesOnly) kept[op.layer] = qkv.map((row) => inCache(row, op.layer));
    return qkv.map((_, t) => attend(qkv, kept[op.layer]!, t, op));
  }

  /** A row of q, k and v whose keys and values are what the cache makes of them. */
  function inCache(row: Float64Array, layer: number): Float64Array {
    if (options.kvDtype === 'f32') return row;
    const numHeads = headsOf(plan.attention, layer);
    const { keyDim: headDim, kvHeads } = plan.caches[layer]!;
    const values = (numHeads + kvHeads) * headDim;
    const result = row.slice();
    for (let at = numHeads * headDim; at < row.length; at += headDim) {
      const head = row.subarray(at, at + headDim);
      if (options.kvDtype === 'bf16') result.set(head.map(roundToBf16), at);
      else result.set(throughQuants(head, 127, at < values), at);
    }
    return result;
  }

  function attend(qkv: Matrix, cached: Matrix, t: number, op: AttentionOp): Float64Array {
    const capped = (score: number) =>
      op.softCap === undefined ? score : op.softCap * Math.tanh(score / op.softCap);
    const numHeads = headsOf(plan.attention, op.layer);
    const { kvHeads: numKvHeads, keyDim: headDim } = plan.caches[op.layer]!;
    const last = lastSeen(t, op);
    const rounded = options.roundsAttention ? roundToBf16 : (x: number) => x;
    const output = new Float64Array(numHeads * headDim);
    for (let head = 0; head < numHeads; head++) {
      const kvHead = Math.floor(head / (numHeads / numKvHeads));
      const k = (numHeads + kvHead) * headDim;
      const v = (numHeads + numKvHeads + kvHead) * headDim;
      const scores = new Float64Array(last + 1).fill(Number.NEGATIVE_INFINITY);
      for (let s = 0; s <= last; s++) {
        if (!isSeen(s, t, op.mask?.window)) continue;
        const queries = options.window && s < options.window.sinks ? sinkQueries : qkv;
        let dot = 0;
        for (let i = 0; i < headDim; i++)
          dot += rounded(queries[t]![head * headDim + i]!) * cached[s]![k + i]!;
        scores[s] = capped(dot * op.scale);
      }
      const logit = op.sinkLogits === undefined ? -Infinity : weights.get(op.sinkLogits)![head]!;
      const maximum = Math.max(...scores, logit);
      const exps = scores.map((score) => Math.exp(score - maximum));
      const sum = exps.reduce((a, b) => a + b, Math.exp(logit - maximum));
      for (let s = 0; s <= last; s++) {
        for (let i = 0; i < headDim; i++) {
          output[head * headDim + i]! += (rounded(exps[s]!) / sum) * cached[s]![v + i]!;
        }
      }
    }
    return output;
  }
}

function rmsNorm(row: Float64Array, weight: Float32Array, epsilon: number): Float64Array {
  const mean = row.reduce((sum, x) => sum + x * x, 0) / row.length;
  return row.map((x, i) => (x / Math.sqrt(mean + epsilon)) * weight[i]!);
}

function layerNorm(row: Float64Array, weight: Float32Array, epsilon: number): Float64Array {
  const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
  const apart = row.map((x) => x - mean);
  const variance = apart.reduce((sum, x) => sum + x * x, 0) / row.length;
  return apart.map((x, i) => (x / Math.sqrt(variance + epsilon)) * weight[i]!);
}

/** What the way down of an expert gets, of the product of gate and up. */
export function raised(
  both: Float64Array,
  { ungated, clamped, activation }: Pick<ExpertsOp, 'ungated' | 'clamped' | 'activation'>,
): Float64Array {
  if (ungated) return both.map((x) => activate(x, activation));
  const width = both.length / 2;
  return both.slice(0, width).map((gate, i) => {
    const up = both[width + i]!;
    if (clamped === undefined) return activate(gate, activation) * up;
    const { alpha, limit } = clamped;
    const least = Math.min(gate, limit);
    return least * activate(alpha * least, 'sigmoid') * (Math.max(-limit, Math.min(up, limit)) + 1);
  });
}

export function activate(x: number, activation: Activation): number {
  switch (activation) {
    case 'none':
      return x;
    case 'silu':
      return x / (1 + Math.exp(-x));
    case 'gelu':
      return (x / 2) * (1 + erf(x / Math.SQRT2));
    case 'geluTanh':
      return (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    case 'tanh':
      return Math.tanh(x);
    case 'relu':
      return Math.max(0, x);
    case 'reluSquared':
      return Math.max(0, x) ** 2;
    case 'sigmoid':
      return 1 / (1 + Math.exp(-x));
    case 'quickGelu':
      return x / (1 + Math.exp(-1.702 * x));
  }
}

export function xielu(x: number, { alphaPositive, alphaNegative, beta, epsilon }: Xielu): number {
  if (x > 0) return alphaPositive * x * x + beta * x;
  return alphaNegative * (Math.expm1(Math.min(x, epsilon)) - x) + beta * x;
}

/** Taylor series; exact to double precision for the small arguments of a tiny network. */
function erf(x: number): number {
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
