import type { CacheShape, StateShape } from '../kvcache/cache-shape.js';
import type { ExpertRule } from './expert-rule.js';
import type { OpProduct } from './products.js';

/**
 * A network as a flat list of ops over values: architecture files write it and every executor reads it.
 *
 * A value is a matrix [rows x width] in f32. Rows are the batch's tokens (T), or after `selectRows` the rows whose
 * logits are needed (R), after `meanPool` one row for each sequence (R too). Rows may also be the buckets of distances (B): ops over these come
 * first, and an executor runs them once, when it is opened. Values live in slots; a slot is reused once its value is no longer read.
 *
 *   embedding -> x -> rmsNorm -> h -> linear(q k v) -> qkv -> rope -> attention -> a -> linear(+ x) -> x ...
 */
export type Activation =
  | 'none'
  | 'silu'
  | 'gelu'
  | 'geluTanh'
  | 'tanh'
  | 'relu'
  | 'reluSquared'
  | 'sigmoid'
  /** x * sigmoid(1.702 x) */
  | 'quickGelu';
export type Rows = 'tokens' | 'logits' | 'distances';
/** What addEmbedding chooses the rows of its table by. */
export type Lookup = 'positions' | 'tokenTypes' | 'tokenIds' | 'places';

/** Rows of a table that addEmbedding by places adds for a token. */
export const PLACES_OF_TOKEN = 4;

export interface PlanValue {
  rows: Rows;
  width: number;
  /** Index of the workspace slot this value lives in. */
  slot: number;
}

/** A weight of the engine: rows of its sources are stacked. `matrix` [rows, columns]; `vector` [columns] (rows = 1), always f32. */
export interface PlanWeight {
  name: string;
  kind: 'matrix' | 'vector';
  rows: number;
  columns: number;
  /** Checkpoint tensors in Hugging Face names, stacked along the rows (vectors: along the columns). */
  sources: WeightSource[];
}

/** A tensor of the checkpoint. `factor`: each number is multiplied by it; of matrices by 0 alone, for rows of zeros. Absent: 1. */
export interface WeightSource {
  name: string;
  rows: number;
  columns: number;
  factor?: number;
}

export type PlanOp =
  /** output[t] = weight[tokenIds[t]] * scale; rows of a prompt's own table are taken as they are. Absent scale: 1. */
  | { op: 'embedding'; output: number; weight: string; scale?: number }
  /** value[t] += what the prompt's own row of token t has from column `first` on; a token of the vocabulary has none, and stays. */
  | { op: 'addPromptRows'; value: number; first: number }
  /**
   * output[t] += weight[i] * scale, where i is positions[t], tokenTypes[t] or tokenIds[t]; a row of a prompt's own table counts as token 0.
   * Absent scale: 1. By places it is the sum of PLACES_OF_TOKEN rows, each times its share:
   *
   *   output[t] += sum over j of weight[places[t][j]] * placeShares[t][j] * scale, in ascending j
   */
  | { op: 'addEmbedding'; output: number; weight: string; by: Lookup; scale?: number }
  /** output += input * weight, each column by its own entry of the vector. */
  | { op: 'addScaled'; output: number; input: number; weight: string }
  /** output = input / rms(input) * weight + residual. residual may be the same value as output; absent: none. */
  | { op: 'rmsNorm'; input: number; output: number; weight: string; epsilon: number; residual?: number }
  /**
   * Changes each of `heads` heads that lie in the value from column `first` on: head / rms(head) * weight.
   * The weight is as wide as a head; null: there is none.
   */
  | { op: 'rmsNormHeads'; value: number; first: number; heads: number; weight: string; epsilon: number }
  | {
      op: 'rmsNormHeads';
      value: number;
      first: number;
      heads: number;
      weight: null;
      columns: number;
      epsilon: number;
    }
  /** output = (input - mean(input)) / deviation(input) * weight + bias; null: without a bias. */
  | {
      op: 'layerNorm';
      input: number;
      output: number;
      weight: string;
      bias: string | null;
      epsilon: number;
    }
  /**
   * Changes each of `heads` heads that lie in the value from column `first` on: (head - mean(head)) / deviation(head) * its own part of
   * the weight, which has them one after the other.
   */
  | { op: 'layerNormHeads'; value: number; first: number; heads: number; weight: string; epsilon: number }
  /** output = activation(input * weight^T + bias) + residual. residual may be the same value as output. */
  | {
      op: 'linear';
      input: number;
      output: number;
      weight: string;
      bias: string | null;
      activation: Activation;
      residual: number | null;
    }
  /** weight stacks gate over up [2 x width(output), columns]: output = activation(gate) * up */
  | {
      op: 'gatedLinear';
      input: number;
      output: number;
      weight: string;
      bias: string | null;
      activation: Activation;
    }
  /**
   * Mixture of experts: each row goes to `used` experts, which ExpertRule chooses by its scores [rows x experts] and shares it out among.
   * choiceBias, shareScales [experts]: see there; absent: none.
   *
   *   output = sum over the row's experts e, in ascending e, of share[e] * down[e](activation(gate[e](input)) * up[e](input)), then + residual
   *
   * ungated: down[e](activation(up[e](input))). gateUp[e] stacks gate over up [2 x inner, width(input)], or is up alone [inner, width(input)];
   * down[e] is [width(output), inner]. residual may be the same value as output. biases: vectors that gateUp[e] and down[e] add to their
   * products. clamped: in place of activation(gate) * up, where the activation is none; see ClampedSwiglu.
   * A row's sum depends on no other row of its batch.
   */
  | ({
      op: 'experts';
      input: number;
      scores: number;
      output: number;
      gateUp: string[];
      down: string[];
      choiceBias?: string;
      shareScales?: string;
      biases?: ExpertBiases;
      ungated?: true;
      clamped?: ClampedSwiglu;
      activation: Activation;
      residual: number | null;
    } & ExpertRule)
  /**
   * Rotates q and k inside qkv in place (half-split pairs i, i + rotaryDim / 2) and writes k and v into the cache. The
   * frequencies are those of the plan's ropeTables[table], or without `table` those that come with the batch. norms: each head of q
   * and of k is normed as by rmsNormHeads after it has turned. queriesOnly: the value has queries alone, which are to meet what an earlier
   * op has written for the layer.
   */
  | {
      op: 'ropeAndCache';
      qkv: number;
      layer: number;
      table?: number;
      norms?: TurnedNorms;
      queriesOnly?: true;
    }
  /**
   * Attention of each token over its sequence's cache; reads q from qkv. output [T x heads * valueDim]. mask: which tokens
   * it attends to; absent: itself and all before it. softCap: each score becomes cap * tanh(score * scale / cap) before
   * the softmax. relative: the table of what distances add to the scores. sinkLogits: vector of a further score of each head, which takes its
   * part in the softmax and has no value.
   * queriesOnly: as in ropeAndCache.
   */
  | {
      op: 'attention';
      qkv: number;
      output: number;
      layer: number;
      scale: number;
      mask?: AttentionMask;
      softCap?: number;
      relative?: number;
      sinkLogits?: string;
      queriesOnly?: true;
    }
  /** output[b] = weight[b], for each bucket of distances. */
  | { op: 'distanceRows'; output: number; weight: string }
  /**
   * Makes a table by which scores depend on the distance b of a key from its query: (q . k + q . keys[b] + queries[b] . k) * scale.
   * The rows of the value have the heads of the queries from column `queries` on, and those of the keys from column `keys` on; null: the
   * table has none, and there is no such product.
   */
  | { op: 'distanceProducts'; value: number; table: number; queries: number | null; keys: number | null }
  /** Makes a table of the vector [B x heads] that is added: q . k * scale + weight[b][head]. */
  | { op: 'distanceBiases'; table: number; weight: string }
  /** Changes the value to cap * tanh(value / cap). */
  | { op: 'softCap'; value: number; cap: number }
  /**
   * Changes each number x of the value to alphaPositive x^2 + beta x where it is above 0, else to
   * alphaNegative (exp(min(x, epsilon)) - 1 - x) + beta x. epsilon is at most 0.
   */
  | ({ op: 'xielu'; value: number } & Xielu)
  /**
   * Changes `columns` columns of the value: value[first + i] *= activation(by[byFirst + floor(i / per)]), for each i below `columns`.
   * Absent per: 1.
   */
  | {
      op: 'gate';
      value: number;
      first: number;
      columns: number;
      by: number;
      byFirst: number;
      per?: number;
      activation: Activation;
    }
  /**
   * Causal convolution of each column with itself, over the rows of a sequence; weight [columns x taps], as wide as the output:
   *
   *   output[t][c] = activation(bias[c] + sum over j of weight[c][j] * input[t - taps + 1 + j][first + c]), in ascending j
   *
   * Inputs before the sequence's first token are 0. State: the last taps - 1 inputs, oldest first [taps - 1 x columns].
   */
  | {
      op: 'shortConv';
      input: number;
      first: number;
      output: number;
      weight: string;
      bias: string | null;
      taps: number;
      activation: Activation;
      state: number;
    }
  /**
   * The gated delta rule (https://arxiv.org/abs/2412.06464) over the tokens of a sequence, one after the other. qkv has in each row
   * queries and keys of keyHeads heads and values of valueHeads heads, as many for each key head; gates has for each value head
   * b, and after all of them a for each. For each value head, with its state S [keyDim x valueDim] and the
   * key head that it belongs to, i / (valueHeads / keyHeads) for value head i, or where they are tiled i %
   * keyHeads:
   *
   *   q = q / |q| / sqrt(keyDim), k = k / |k|, where |x| = sqrt(sum of x^2 + epsilon)
   *   S = S * exp(-exp(decay) * softplus(a + decayBias))
   *   S = S + k (v - k^T S) sigmoid(b)
   *   output = q^T S
   *
   * rates: decay holds rates less than 0, -exp(decay), in place of their logarithms. State: the S of all value heads, one after the other.
   */
  | {
      op: 'gatedDelta';
      qkv: number;
      gates: number;
      output: number;
      /** Vectors [valueHeads]. */
      decay: string;
      decayBias: string;
      tiled?: true;
      rates?: true;
      keyHeads: number;
      valueHeads: number;
      keyDim: number;
      valueDim: number;
      epsilon: number;
      state: number;
    }
  /**
   * The selective scan of Mamba2 (https://arxiv.org/abs/2405.21060) over the tokens of a sequence, one after the other. The input has in
   * each row x of all heads, then B of all groups, then C; steps has a column for each head, from stepsFirst on. For each head, with its
   * state S [stateDim x headDim] and the group that it belongs to, i / (heads / groups) for head i:
   *
   *   step = min(max(softplus(steps + stepBias), leastStep), mostStep)
   *   S = S * exp(-exp(decay) * step) + B (x * step)
   *   output = C^T S + skip * x
   *
   * mostStep null: no limit. rates: decay holds rates less than 0, -exp(decay), in place of their logarithms. State: the S of all heads, one
   * after the other.
   */
  | {
      op: 'selectiveScan';
      input: number;
      steps: number;
      stepsFirst: number;
      output: number;
      /** Vectors [heads]. */
      decay: string;
      stepBias: string;
      skip: string;
      rates?: true;
      heads: number;
      headDim: number;
      groups: number;
      stateDim: number;
      leastStep: number;
      mostStep: number | null;
      state: number;
    }
  /** Changes `columns` columns of the value, from `first` on: x * factor. */
  | { op: 'scale'; value: number; first: number; columns: number; factor: number }
  /** Changes `columns` columns of the value, from `first` on: min(max(x, least), most). */
  | { op: 'clamp'; value: number; first: number; columns: number; least: number; most: number }
  /**
   * Keeps the rows that logitRows names. rows: each makes one row of the output together with the rows - 1 after it, all side by side
   * [R x rows * width], or their mean. Absent: 1.
   */
  | { op: 'selectRows'; input: number; output: number; rows?: number; mean?: true }
  /**
   * Takes the mean over each sequence's rows: there are as many output rows as sequences. weighted: the row at position i counts
   * i + 1 times. Absent: all count once.
   */
  | { op: 'meanPool'; input: number; output: number; weighted?: boolean }
  /** output = input / |input| */
  | { op: 'normalize'; input: number; output: number }
  /** output[r] = input[r], then other[r]: as wide as both. */
  | { op: 'join'; input: number; other: number; output: number }
  /** output[t] = the batch's rowInputs[t]: rows that the caller has from another network. */
  | { op: 'rowInput'; output: number }
  /** Copies the rows of a value to the batch's keptRows, where it has room for them: for another network. */
  | { op: 'keepRows'; input: number };

/**
 * The tokens of its sequence that a token attends to. The cache keeps no less for it. The token at position i attends to j
 * where
 *
 *   j <= i, or bothWays        and        |i - j| < window, or no window
 *   i < j, withinPictures, and both are of one of the batch's pictures
 */
export interface AttentionMask {
  /** The layer's own window, in tokens: those to one side, the token itself included. Absent: all. */
  window?: number;
  /** True for an encoder: a token also attends to what follows it. The same in all layers of a plan. */
  bothWays?: boolean;
  /** True: a token attends to those of its own segment alone, see PackedBatch.segments. Only both ways, without a window. */
  segments?: boolean;
  /** True: a token of a picture also attends to all those of its picture that follow it, however short the window is. */
  withinPictures?: boolean;
}

/** Vectors [keyDim] by which heads of queries and of keys are normed. */
export interface TurnedNorms {
  query: string;
  key: string;
  epsilon: number;
}

/** Numbers of the activation xIELU (https://arxiv.org/abs/2411.13010). */
export interface Xielu {
  alphaPositive: number;
  alphaNegative: number;
  beta: number;
  epsilon: number;
}

/** Vectors of the biases of each expert: [2 x inner], without a gate [inner], and [width(output)]. */
export interface ExpertBiases {
  gateUp: string[];
  down: string[];
}

/**
 * What gpt-oss makes of gate and up:
 *
 *   gate = min(gate, limit), up = max(-limit, min(up, limit)): gate * sigmoid(alpha * gate) * (up + 1)
 */
export interface ClampedSwiglu {
  alpha: number;
  limit: number;
}

export interface AttentionShape {
  /**
   * Layers that keep something of each token, as many as the plan has caches: 1 for an encoder, whose keys and values are
   * read only while their layer runs, so that the layers write over one another's.
   */
  numLayers: number;
  /** Heads of queries; of layers that differ the most, see layerHeads. */
  numHeads: number;
  /** Heads of queries of each layer. Absent: numHeads in all. */
  layerHeads?: number[];
  /** Dimensions of a head that RoPE rotates by the batch's frequencies. */
  rotaryDim: number;
  /**
   * Inverse frequencies of layers that do not use the batch's; the same for every sequence. A table rotates twice as many dimensions as it
   * has frequencies.
   */
  ropeTables?: number[][];
  /**
   * Axis of the position that each of the batch's frequencies turns by: 0 time, 1 height, 2 width. Absent: all turn by the one position
   * of a token. Positions of tokens of the vocabulary are the same on all axes.
   */
  ropeAxes?: number[];
  /** Of scores that depend on distances; absent: none do. */
  distances?: DistanceBuckets;
}

/** How far a key lies from its query, its position less the query's, in buckets. */
export interface DistanceBuckets {
  /** Number of buckets. */
  count: number;
  /** Bucket of each distance from -reach to reach, 2 reach + 1 of them; a greater distance has that of the nearest one here. */
  buckets: number[];
}

/** qkv value, of a layer's cache: [q (numHeads * keyDim) | k (kvHeads * keyDim) | v (kvHeads * valueDim)] per row; or the queries alone. */
export interface NetworkPlan {
  architecture: string;
  vocabSize: number;
  /**
   * Width of the network's output: vocabSize; for an encoder the width of an embedding, or the number of its scores.
   */
  outputWidth: number;
  hiddenSize: number;
  attention: AttentionShape;
  /** Cache shape of each layer, indexed by op.layer. */
  caches: CacheShape[];
  /** What layers keep of a sequence as a whole, indexed by op.state. Absent: no layer does. */
  states?: StateShape[];
  weights: PlanWeight[];
  values: PlanValue[];
  /** Width of each slot, and which rows it is sized for. */
  slots: { rows: Rows; width: number }[];
  ops: PlanOp[];
  /** Value that holds the network's output, usually the logits [R x outputWidth]. */
  logits: number;
  /**
   * A head that guesses the token after the next one: a network of its own, over the rows that this one keeps
   * and the tokens after them. Both have the same weights, some of which only one of them reads. Absent:
   * there is none.
   */
  head?: NetworkPlan;
  /** Of networks that share their weights: the products of all, in the order in which packed matrices lie in their file. */
  packed?: PackedProduct[];
}

/** isExpert: the matrix is an expert's. */
export type PackedProduct = OpProduct & { isExpert?: boolean };
