import type { CacheShape, StateShape } from '../kvcache/cache-shape.js';
import { headsOf, qkvWidth } from './cache-layers.js';
import { type ExpertRule, plainRule, ruleError } from './expert-rule.js';
import type {
  Activation,
  AttentionMask,
  AttentionShape,
  ClampedSwiglu,
  ExpertBiases,
  Lookup,
  NetworkPlan,
  PlanOp,
  PlanWeight,
  Rows,
  TurnedNorms,
  WeightSource,
  Xielu,
} from './plan.js';
import { assignSlots } from './slot-assignment.js';

/** A matrix in a value: its index and its shape. The builder's ops return refs and take them as inputs. */
export interface ValueRef {
  readonly index: number;
  readonly rows: Rows;
  readonly width: number;
}

export interface LinearOptions {
  weight: string;
  bias?: string | null;
  activation?: Activation;
}

/** The experts of one layer: their weights by number, and how a row is shared out among them. */
export interface ExpertOptions extends ExpertRule {
  gateUp: readonly string[];
  down: readonly string[];
  /** Vector that is added for the choice alone; absent: none. */
  choiceBias?: string;
  /** Vector of each expert's factor on its shares; absent: none. */
  shareScales?: string;
  /** Vectors that each expert adds to its products; absent: none. */
  biases?: ExpertBiases;
  /** An expert is activation(input * up^T) * down^T: `gateUp` has no gate. */
  ungated?: true;
  /** Takes the place of the activation, which is none then. */
  clamped?: ClampedSwiglu;
  activation: Activation;
}

/** Attention settings of one layer that differ between networks. */
export interface AttentionOptions {
  /**
   * Tokens that a token of this layer attends to, itself included, on each side that it sees; absent or null: all tokens that
   * the engine keeps.
   */
  window?: number | null;
  /** True: a token also attends to what follows it. Absent: it does not. */
  bothWays?: boolean;
  /** True: a token attends to its segment of the sequence alone. Absent: to the whole sequence. */
  segments?: boolean;
  /** True: a token of a picture also attends to those of its picture that follow it. Absent: it does not. */
  withinPictures?: boolean;
  /** Cap on the attention scores; absent or null: none. */
  softCap?: number | null;
  /** Index into the header's ropeTables; absent or null: the frequencies of the batch. */
  ropeTable?: number | null;
  /** Norms of heads after they have turned; absent: none. */
  norms?: TurnedNorms;
  /** Table of what distances add to the scores, from distanceProducts or distanceBiases; absent or null: none. */
  relative?: number | null;
  /** Vector of a further score of each head of queries; absent: none. */
  sinkLogits?: string;
  /** True: the value has queries alone, which meet what an earlier op has stored for the layer. */
  queriesOnly?: true;
}

type Gate = Extract<PlanOp, { op: 'gate' }>;
export type GateOptions = Partial<Pick<Gate, 'first' | 'byFirst' | 'per' | 'activation'>>;

/** See the op shortConv. */
export type ConvOptions = Pick<
  Extract<PlanOp, { op: 'shortConv' }>,
  'weight' | 'bias' | 'taps' | 'activation'
>;

/** See the op gatedDelta. */
export type DeltaOptions = Omit<
  Extract<PlanOp, { op: 'gatedDelta' }>,
  'op' | 'qkv' | 'gates' | 'output' | 'state'
>;

/** See the op selectiveScan. */
export type ScanOptions = Omit<
  Extract<PlanOp, { op: 'selectiveScan' }>,
  'op' | 'input' | 'steps' | 'stepsFirst' | 'output' | 'state'
>;

export interface NetworkHeader {
  architecture: string;
  vocabSize: number;
  /** Width of the network's output; absent: logits over the vocabulary. */
  outputWidth?: number;
  hiddenSize: number;
  attention: AttentionShape;
  /** One cache shape for each of the attention's layers. */
  caches: CacheShape[];
}

/**
 * Writes a NetworkPlan op by op. Each op checks the widths it joins, so that a mistake in an architecture file is an
 * error here and not a wrong answer later. Slots are assigned at the end, when the last reader of each value is known.
 */
export class NetworkBuilder {
  readonly #header: NetworkHeader;
  readonly #weights = new Map<string, PlanWeight>();
  readonly #values: ValueRef[] = [];
  readonly #ops: PlanOp[] = [];
  #numTables = 0;
  readonly #states: StateShape[] = [];

  constructor(header: NetworkHeader) {
    const { caches, attention } = header;
    require(caches.length ===
      attention.numLayers, `${caches.length} caches for ${attention.numLayers} layers`);
    this.#header = header;
  }

  /** Adds a weight [sum of the sources' rows, columns]; returns its name. */
  matrix(name: string, sources: WeightSource[]): string {
    const columns = sources[0]!.columns;
    require(sources.every((source) => source.columns === columns), `${name}: its sources differ in columns`);
    require(sources.every(({ factor = 0 }) => factor === 0), `${name}: a matrix has no factor but 0`);
    const rows = sources.reduce((sum, source) => sum + source.rows, 0);
    return this.#addWeight({ name, kind: 'matrix', rows, columns, sources });
  }

  /** Adds a weight [sum of the sources' columns]; returns its name. */
  vector(name: string, sources: Omit<WeightSource, 'rows'>[]): string {
    const columns = sources.reduce((sum, source) => sum + source.columns, 0);
    const stacked = sources.map((source) => ({ ...source, rows: 1 }));
    return this.#addWeight({ name, kind: 'vector', rows: 1, columns, sources: stacked });
  }

  /** Returns the tokens' embeddings [T x hiddenSize], each row times `scale`. */
  embedding(weight: string, scale = 1): ValueRef {
    const table = this.#weight(weight, 'matrix');
    require(table.rows === this.#header.vocabSize, `${weight}: the embedding has ${table.rows} rows`);
    const output = this.#newValue('tokens', table.columns);
    this.#ops.push({ op: 'embedding', output: output.index, weight, ...(scale === 1 ? {} : { scale }) });
    return output;
  }

  /** sum += the table's row of each token, or of its position or type, times `scale`: the sum is written in place. */
  addEmbedding(sum: ValueRef, weight: string, by: Lookup, scale = 1): void {
    const table = this.#weight(weight, 'matrix');
    require(table.columns === sum.width, `${weight}: rows of ${table.columns} for a width of ${sum.width}`);
    const { vocabSize } = this.#header;
    require(by !== 'tokenIds' ||
      table.rows === vocabSize, `${weight}: ${table.rows} rows for ${vocabSize} tokens`);
    this.#ops.push({ op: 'addEmbedding', output: sum.index, weight, by, ...(scale !== 1 && { scale }) });
  }

  /** sum += columns of each token's own row, from `first` on, where its prompt brought one: the sum is written in place. */
  addPromptRows(sum: ValueRef, first: number): void {
    require(sum.rows === 'tokens', 'rows of prompts are added to rows of tokens');
    this.#ops.push({ op: 'addPromptRows', value: sum.index, first });
  }

  /** sum += input * weight, column by column: the sum is written in place. */
  addScaled(sum: ValueRef, input: ValueRef, weight: string): void {
    this.#checkScales(weight, input.width);
    require(sum.width === input.width &&
      sum.rows === input.rows, `${weight}: its output does not fit the sum`);
    this.#ops.push({ op: 'addScaled', output: sum.index, input: input.index, weight });
  }

  /** @param bias null: none */
  layerNorm(input: ValueRef, weight: string, bias: string | null, epsilon: number): ValueRef {
    for (const name of bias === null ? [weight] : [weight, bias]) {
      const { columns } = this.#weight(name, 'vector');
      require(columns === input.width, `${name}: ${columns} entries for a width of ${input.width}`);
    }
    const output = this.#newValue(input.rows, input.width);
    this.#ops.push({ op: 'layerNorm', input: input.index, output: output.index, weight, bias, epsilon });
    return output;
  }

  /** sum += rmsNorm(input): the sum is written in place. */
  addRmsNorm(sum: ValueRef, input: ValueRef, weight: string, epsilon: number): void {
    this.#checkScales(weight, input.width);
    require(sum.width === input.width &&
      sum.rows === input.rows, `${weight}: its output does not fit the sum`);
    const [output, residual] = [sum.index, sum.index];
    this.#ops.push({ op: 'rmsNorm', input: input.index, output, weight, epsilon, residual });
  }

  /** Norms each of `heads` heads of qkv, from head `first` on, in place: queries come first, then keys. */
  rmsNormHeads(qkv: ValueRef, first: number, heads: number, weight: string, epsilon: number): void {
    const { columns: headDim } = this.#weight(weight, 'vector');
    const widths = [...new Set(this.#header.caches.map(({ keyDim }) => keyDim))];
    require(widths.includes(headDim), `${weight}: ${headDim} scales for a width of ${widths.join(' or ')}`);
    require((first + heads) * headDim <=
      qkv.width, `${weight}: ${first + heads} heads in ${qkv.width} columns`);
    this.#ops.push({ op: 'rmsNormHeads', value: qkv.index, first: first * headDim, heads, weight, epsilon });
  }

  /** Norms the columns of a value from `first` on, in `heads` runs of as many columns as there are scales, in place. */
  rmsNormColumns(value: ValueRef, first: number, weight: string, epsilon: number, heads = 1): void {
    const { columns } = this.#weight(weight, 'vector');
    const end = first + heads * columns;
    require(end <= value.width, `${weight}: ${end} of ${value.width} columns`);
    this.#ops.push({ op: 'rmsNormHeads', value: value.index, first, heads, weight, epsilon });
  }

  /** Norms `heads` heads of `width` columns each that lie in a value from column `first` on, without a weight, in place. */
  rmsNormPlain(value: ValueRef, first: number, heads: number, width: number, epsilon: number): void {
    const end = first + heads * width;
    require(end <= value.width, `${end} of ${value.width} columns are normed`);
    const head = { heads, weight: null, columns: width };
    this.#ops.push({ op: 'rmsNormHeads', value: value.index, first, ...head, epsilon });
  }

  /** LayerNorm over each of `heads` heads of qkv, from column `first` on, in place: each has its part of the weight. */
  layerNormHeads(qkv: ValueRef, first: number, heads: number, weight: string, epsilon: number): void {
    const { columns } = this.#weight(weight, 'vector');
    require(columns % heads === 0, `${weight}: ${columns} scales for ${heads} heads`);
    require(first + columns <= qkv.width, `${weight}: ${first + columns} of ${qkv.width} columns`);
    this.#ops.push({ op: 'layerNormHeads', value: qkv.index, first, heads, weight, epsilon });
  }

  /** value = xIELU(value), in place. */
  xielu(value: ValueRef, numbers: Xielu): void {
    const finite = Object.values(numbers).every(Number.isFinite);
    require(finite && numbers.epsilon <= 0, `the numbers of an xIELU are ${JSON.stringify(numbers)}`);
    this.#ops.push({ op: 'xielu', value: value.index, ...numbers });
  }

  /**
   * Multiplies columns of the value, from `first` on, by those of `by`, from `byFirst` on: in place.
   * @param per columns that a factor is for; default 1
   * @param activation of the factors; default none
   */
  gate(
    value: ValueRef,
    by: ValueRef,
    columns: number,
    { first = 0, byFirst = 0, per = 1, activation = 'none' }: GateOptions = {},
  ): void {
    require(first + columns <= value.width &&
      columns % per === 0 &&
      byFirst + columns / per <= by.width &&
      value.rows === by.rows &&
      (value.index !== by.index ||
        Math.abs(first - byFirst) >= columns), `${columns} columns of ${by.width} gate ${value.width}`);
    const places = { value: value.index, first, columns, by: by.index, byFirst };
    this.#ops.push({ op: 'gate', ...places, ...(per > 1 && { per }), activation });
  }

  /** Convolution over a sequence's rows, of as many columns from `first` on as the weight [columns x taps] has. */
  shortConv(input: ValueRef, first: number, { weight, bias, taps, activation }: ConvOptions): ValueRef {
    const columns = this.#weight(weight, 'vector').columns / taps;
    require(Number.isInteger(columns) &&
      first + columns <= input.width, `${weight}: ${columns} of ${input.width} columns`);
    if (bias !== null) this.#checkScales(bias, columns);
    const state = this.#addState((taps - 1) * columns);
    const output = this.#newValue(input.rows, columns);
    const places = { input: input.index, first, output: output.index };
    this.#ops.push({ op: 'shortConv', ...places, weight, bias, taps, activation, state });
    return output;
  }

  /** The gated delta rule; see the op. Returns [T x valueHeads * valueDim]. */
  gatedDelta(qkv: ValueRef, gates: ValueRef, options: DeltaOptions): ValueRef {
    const { decay, decayBias, keyHeads, valueHeads, keyDim, valueDim } = options;
    const width = 2 * keyHeads * keyDim + valueHeads * valueDim;
    require(qkv.width === width, `qkv of the delta rule is ${qkv.width} wide, not ${width}`);
    require(gates.width === 2 * valueHeads, `${gates.width} gates for ${valueHeads} heads`);
    require(valueHeads % keyHeads === 0, `${valueHeads} heads of values for ${keyHeads} of keys`);
    for (const name of [decay, decayBias]) this.#checkScales(name, valueHeads);
    const state = this.#addState(valueHeads * keyDim * valueDim);
    const output = this.#newValue(qkv.rows, valueHeads * valueDim);
    const places = { qkv: qkv.index, gates: gates.index, output: output.index };
    this.#ops.push({ op: 'gatedDelta', ...places, ...options, state });
    return output;
  }

  /** The selective scan, whose steps are columns of `steps` from `stepsFirst` on; see the op. Returns [T x heads * headDim]. */
  selectiveScan(input: ValueRef, steps: ValueRef, stepsFirst: number, options: ScanOptions): ValueRef {
    const { decay, stepBias, skip, heads, headDim, groups, stateDim } = options;
    const width = heads * headDim + 2 * groups * stateDim;
    require(input.width === width, `the input of a scan is ${input.width} wide, not ${width}`);
    require(stepsFirst + heads <= steps.width, `steps of ${heads} heads in ${steps.width} columns`);
    require(heads % groups === 0, `${heads} heads for ${groups} groups`);
    for (const name of [decay, stepBias, skip]) this.#checkScales(name, heads);
    const state = this.#addState(heads * headDim * stateDim);
    const output = this.#newValue(input.rows, heads * headDim);
    const places = { input: input.index, steps: steps.index, stepsFirst, output: output.index };
    this.#ops.push({ op: 'selectiveScan', ...places, ...options, state });
    return output;
  }

  /** Multiplies columns of the value by a number, in place; none where that is 1. */
  scale(value: ValueRef, factor: number, first = 0, columns = value.width - first): void {
    require(Number.isFinite(factor) &&
      first + columns <= value.width, `${columns} columns of ${value.width} by ${factor}`);
    if (factor !== 1) this.#ops.push({ op: 'scale', value: value.index, first, columns, factor });
  }

  /** Keeps columns of the value between two numbers, in place. */
  clamp(
    value: ValueRef,
    [least, most]: readonly [number, number],
    first = 0,
    columns = value.width - first,
  ): void {
    require(least <= most &&
      first + columns <= value.width, `${columns} columns of ${value.width} from ${least} to ${most}`);
    this.#ops.push({ op: 'clamp', value: value.index, first, columns, least, most });
  }

  /** value = cap * tanh(value / cap), in place. */
  softCap(value: ValueRef, cap: number): void {
    this.#ops.push({ op: 'softCap', value: value.index, cap });
  }

  rmsNorm(input: ValueRef, weight: string, epsilon: number): ValueRef {
    this.#checkScales(weight, input.width);
    const output = this.#newValue(input.rows, input.width);
    this.#ops.push({ op: 'rmsNorm', input: input.index, output: output.index, weight, epsilon });
    return output;
  }

  linear(input: ValueRef, options: LinearOptions): ValueRef {
    const output = this.#newValue(input.rows, this.#linearWidth(input, options));
    this.#pushLinear(input, output, options, null);
    return output;
  }

  /** residual += linear(input): the sum is written in place. */
  addLinear(residual: ValueRef, input: ValueRef, options: LinearOptions): void {
    const width = this.#linearWidth(input, options);
    require(residual.width === width &&
      residual.rows === input.rows, `${options.weight}: its output does not fit the residual`);
    this.#pushLinear(input, residual, options, residual);
  }

  /** Returns residual + linear(input): the residual stays as it is. */
  sumLinear(residual: ValueRef, input: ValueRef, options: LinearOptions): ValueRef {
    const output = this.#newValue(input.rows, this.#linearWidth(input, options));
    require(residual.width === output.width &&
      residual.rows === input.rows, `${options.weight}: its output does not fit the residual`);
    this.#pushLinear(input, output, options, residual);
    return output;
  }

  /** Returns activation(input * gate^T) * (input * up^T); the weight stacks gate over up. */
  gatedLinear(input: ValueRef, options: LinearOptions & { activation: Activation }): ValueRef {
    const stacked = this.#linearWidth(input, options);
    require(stacked % 2 === 0, `${options.weight}: ${stacked} rows cannot be halved into gate and up`);
    const output = this.#newValue(input.rows, stacked / 2);
    const { weight, bias = null, activation } = options;
    this.#ops.push({
      op: 'gatedLinear',
      input: input.index,
      output: output.index,
      weight,
      bias,
      activation,
    });
    return output;
  }

  /**
   * sum += the mixture of `experts` of the input, by its scores [rows x experts]: the sum is written in place. Each expert has a matrix that
   * stacks gate over up, and one for the way down.
   */
  addExperts(sum: ValueRef, input: ValueRef, scores: ValueRef, experts: ExpertOptions): void {
    this.#pushExperts(sum, input, scores, experts, sum);
  }

  /** Returns the mixture of `experts` of the input alone. */
  experts(input: ValueRef, scores: ValueRef, experts: ExpertOptions): ValueRef {
    const output = this.#newValue(input.rows, input.width);
    this.#pushExperts(output, input, scores, experts, null);
    return output;
  }

  /** Returns the input with the mixture of `experts` of it added, as addExperts. */
  withExperts(input: ValueRef, scores: ValueRef, experts: ExpertOptions): ValueRef {
    const output = this.#newValue(input.rows, input.width);
    this.#pushExperts(output, input, scores, experts, input);
    return output;
  }

  #pushExperts(
    output: ValueRef,
    input: ValueRef,
    scores: ValueRef,
    experts: ExpertOptions,
    residual: ValueRef | null,
  ): void {
    const {
      gateUp,
      down,
      choiceBias,
      shareScales,
      biases: ofProducts,
      ungated,
      clamped,
      activation,
    } = experts;
    const count = gateUp.length;
    require(scores.rows === input.rows &&
      scores.width === count &&
      down.length === count, `scores of ${scores.width} and ${down.length} ways down for ${count} experts`);
    const wrong = ruleError(count, experts);
    require(wrong === null, wrong ?? '');
    for (const name of [choiceBias, shareScales]) {
      const entries = name === undefined ? count : this.#weight(name, 'vector').columns;
      require(entries === count, `${name}: ${entries} entries for ${count} experts`);
    }
    require(choiceBias === undefined ||
      experts.scoring !== 'sparsemixer', 'a bias of the choice by sparsemixer');
    require(output.rows === input.rows, 'the output of experts does not fit the residual');
    const inner = this.#weight(down[0]!, 'matrix').columns;
    const raised = ungated ? inner : 2 * inner;
    for (let expert = 0; expert < count; expert++) {
      this.#checkMatrix(gateUp[expert]!, raised, input.width);
      this.#checkMatrix(down[expert]!, output.width, inner);
    }
    if (ofProducts !== undefined) this.#checkBiases(ofProducts, count, raised, output.width);
    if (clamped !== undefined) {
      const { alpha, limit } = clamped;
      require(!ungated &&
        activation === 'none' &&
        alpha > 0 &&
        limit > 0 &&
        Number.isFinite(
          alpha * limit,
        ), `a clamp at ${limit} by ${alpha} of ${ungated ? 'up alone' : activation}`);
    }
    this.#ops.push({
      op: 'experts',
      input: input.index,
      scores: scores.index,
      output: output.index,
      gateUp: [...gateUp],
      down: [...down],
      ...plainRule(experts),
      ...(choiceBias !== undefined && { choiceBias }),
      ...(shareScales !== undefined && { shareScales }),
      ...(ofProducts !== undefined && {
        biases: { gateUp: [...ofProducts.gateUp], down: [...ofProducts.down] },
      }),
      ...(ungated && { ungated }),
      ...(clamped !== undefined && { clamped: { ...clamped } }),
      activation,
      residual: residual?.index ?? null,
    });
  }

  #checkBiases({ gateUp, down }: ExpertBiases, count: number, raised: number, width: number): void {
    require(gateUp.length === count &&
      down.length === count, `${gateUp.length} and ${down.length} biases for ${count} experts`);
    for (const [names, columns] of [
      [gateUp, raised],
      [down, width],
    ] as const)
      for (const name of names) {
        const entries = this.#weight(name, 'vector').columns;
        require(entries === columns, `${name}: ${entries} entries for ${columns} rows`);
      }
  }

  /**
   * Rotates q and k of qkv in place, stores k and v, attends.
   * Returns [T x numHeads * valueDim].
   */
  attention(qkv: ValueRef, layer: number, scale: number, options: AttentionOptions = {}): ValueRef {
    const { numLayers, ropeTables = [] } = this.#header.attention;
    const table = options.ropeTable ?? undefined;
    const mask = maskOf(options);
    const softCap = options.softCap ?? undefined;
    const relative = options.relative ?? undefined;
    require(relative === undefined || relative < this.#numTables, `table ${relative} of ${this.#numTables}`);
    require(table === undefined || table < ropeTables.length, `RoPE table ${table} of ${ropeTables.length}`);
    require(layer < numLayers, `layer ${layer} of ${numLayers}`);
    require(!mask?.segments ||
      (mask.bothWays === true &&
        mask.window === undefined &&
        relative ===
          undefined), 'segments of tokens that do not attend both ways, or have a window or distances');
    const numHeads = headsOf(this.#header.attention, layer);
    const cache = this.#header.caches[layer]!;
    const { queriesOnly } = options;
    const expected = queriesOnly ? numHeads * cache.keyDim : qkvWidth(numHeads, cache);
    require(qkv.width === expected, `qkv is ${qkv.width} wide`);
    const { norms, sinkLogits } = options;
    if (sinkLogits !== undefined) {
      const { columns } = this.#weight(sinkLogits, 'vector');
      require(columns === numHeads, `${sinkLogits}: ${columns} entries for ${numHeads} heads`);
    }
    if (norms !== undefined)
      for (const name of [norms.query, norms.key]) this.#checkScales(name, cache.keyDim);
    this.#ops.push({
      op: 'ropeAndCache',
      qkv: qkv.index,
      layer,
      ...(table === undefined ? {} : { table }),
      ...(norms === undefined ? {} : { norms }),
      ...(queriesOnly && { queriesOnly }),
    });
    const output = this.#newValue(qkv.rows, numHeads * cache.valueDim);
    this.#ops.push({
      op: 'attention',
      qkv: qkv.index,
      output: output.index,
      layer,
      scale,
      ...(mask === undefined ? {} : { mask }),
      ...(softCap === undefined ? {} : { softCap }),
      ...(relative === undefined ? {} : { relative }),
      ...(sinkLogits === undefined ? {} : { sinkLogits }),
      ...(queriesOnly && { queriesOnly }),
    });
    return output;
  }

  /** Returns the rows of a table, one for each bucket of distances. Ops over such rows come before all others. */
  distanceRows(weight: string): ValueRef {
    const { rows, columns } = this.#weight(weight, 'matrix');
    const { distances } = this.#header.attention;
    require(rows ===
      distances?.count, `${weight}: ${rows} rows for ${distances?.count} buckets of distances`);
    const output = this.#newValue('distances', columns);
    this.#ops.push({ op: 'distanceRows', output: output.index, weight });
    return output;
  }

  /**
   * Makes the table of products by the rows of a value, which has the heads of queries and of keys from these columns on; null: it has
   * none. @returns the table, for attention
   */
  distanceProducts(
    value: ValueRef,
    { queries, keys }: { queries: number | null; keys: number | null },
  ): number {
    const { numHeads } = this.#header.attention;
    const width = numHeads * this.#header.caches[0]!.keyDim;
    const fits = [queries, keys].every((first) => first === null || first + width <= value.width);
    require(value.rows === 'distances' && fits, `heads of ${width} columns in rows of ${value.width}`);
    this.#ops.push({ op: 'distanceProducts', value: value.index, table: this.#numTables, queries, keys });
    return this.#numTables++;
  }

  /** Makes the table of a vector [buckets x heads]. @returns the table, for attention */
  distanceBiases(weight: string): number {
    const { columns } = this.#weight(weight, 'vector');
    const { distances, numHeads } = this.#header.attention;
    const expected = (distances?.count ?? 0) * numHeads;
    require(columns === expected, `${weight}: ${columns} entries in place of ${expected}`);
    this.#ops.push({ op: 'distanceBiases', table: this.#numTables, weight });
    return this.#numTables++;
  }

  /** Returns the rows whose logits are needed, [R x width]. */
  selectRows(input: ValueRef): ValueRef {
    const output = this.#newValue('logits', input.width);
    this.#ops.push({ op: 'selectRows', input: input.index, output: output.index });
    return output;
  }

  /** Returns these rows with the rows - 1 after each, side by side [R x rows * width]; `mean`: the mean of them. */
  mergeRows(input: ValueRef, rows: number, mean = false): ValueRef {
    require(Number.isSafeInteger(rows) && rows > 0, `${rows} rows are merged`);
    const output = this.#newValue('logits', mean ? input.width : rows * input.width);
    const { index } = input;
    this.#ops.push({ op: 'selectRows', input: index, output: output.index, rows, ...(mean && { mean }) });
    return output;
  }

  /** Returns the mean over the rows of each sequence, [R x width]; `weighted`: the row at position i counts i + 1 times. */
  meanPool(input: ValueRef, weighted = false): ValueRef {
    const output = this.#newValue('logits', input.width);
    const { index } = input;
    this.#ops.push({ op: 'meanPool', input: index, output: output.index, ...(weighted && { weighted }) });
    return output;
  }

  /** Returns rows with the columns of the input, followed by those of the other. */
  join(input: ValueRef, other: ValueRef): ValueRef {
    require(input.rows === other.rows, `rows of ${input.rows} are joined with rows of ${other.rows}`);
    const output = this.#newValue(input.rows, input.width + other.width);
    this.#ops.push({ op: 'join', input: input.index, other: other.index, output: output.index });
    return output;
  }

  /** Returns the rows that a caller brings, [T x width]. */
  rowInput(width: number): ValueRef {
    const output = this.#newValue('tokens', width);
    this.#ops.push({ op: 'rowInput', output: output.index });
    return output;
  }

  /** Lets a caller have the rows of a value. */
  keepRows(input: ValueRef): void {
    require(input.rows === 'tokens', 'only rows of tokens are kept');
    this.#ops.push({ op: 'keepRows', input: input.index });
  }

  /** Returns the rows scaled to length 1. */
  normalize(input: ValueRef): ValueRef {
    const output = this.#newValue(input.rows, input.width);
    this.#ops.push({ op: 'normalize', input: input.index, output: output.index });
    return output;
  }

  build(logits: ValueRef): NetworkPlan {
    const outputWidth = this.#header.outputWidth ?? this.#header.vocabSize;
    require(logits.rows === 'logits' && logits.width === outputWidth, `the logits are ${logits.width} wide`);
    const { values, slots } = assignSlots(this.#values, this.#ops, logits.index);
    return {
      ...this.#header,
      outputWidth,
      ...(this.#states.length > 0 && { states: this.#states }),
      weights: [...this.#weights.values()],
      values,
      slots,
      ops: this.#ops,
      logits: logits.index,
    };
  }

  #addWeight(weight: PlanWeight): string {
    require(!this.#weights.has(weight.name), `${weight.name} is declared twice`);
    this.#weights.set(weight.name, weight);
    return weight.name;
  }

  #weight(name: string, kind: PlanWeight['kind']): PlanWeight {
    const weight = this.#weights.get(name);
    require(weight !== undefined && weight.kind === kind, `${name} is not a ${kind} of this network`);
    return weight!;
  }

  #addState(size: number): number {
    return this.#states.push({ size }) - 1;
  }

  #checkMatrix(name: string, rows: number, columns: number): void {
    const weight = this.#weight(name, 'matrix');
    require(weight.rows === rows &&
      weight.columns ===
        columns, `${name}: [${weight.rows} x ${weight.columns}] in place of [${rows} x ${columns}]`);
  }

  #checkScales(name: string, width: number): void {
    const { columns } = this.#weight(name, 'vector');
    require(columns === width, `${name}: ${columns} scales for a width of ${width}`);
  }

  #newValue(rows: Rows, width: number): ValueRef {
    const value = { index: this.#values.length, rows, width };
    this.#values.push(value);
    return value;
  }

  #linearWidth(input: ValueRef, options: LinearOptions): number {
    const weight = this.#weight(options.weight, 'matrix');
    require(weight.columns ===
      input.width, `${options.weight}: ${weight.columns} columns for a width of ${input.width}`);
    if (options.bias) {
      const bias = this.#weight(options.bias, 'vector');
      require(bias.columns ===
        weight.rows, `${options.bias}: ${bias.columns} entries for ${weight.rows} rows`);
    }
    return weight.rows;
  }

  #pushLinear(input: ValueRef, output: ValueRef, options: LinearOptions, residual: ValueRef | null): void {
    const { weight, bias = null, activation = 'none' } = options;
    this.#ops.push({
      op: 'linear',
      input: input.index,
      output: output.index,
      weight,
      bias,
      activation,
      residual: residual?.index ?? null,
    });
  }
}

function maskOf(options: AttentionOptions): AttentionMask | undefined {
  const { window, bothWays = false, segments = false, withinPictures = false } = options;
  if (window == null && !bothWays && !segments && !withinPictures) return undefined;
  return {
    ...(window == null ? {} : { window }),
    ...(bothWays ? { bothWays } : {}),
    ...(segments ? { segments } : {}),
    ...(withinPictures ? { withinPictures } : {}),
  };
}

function require(condition: boolean, what: string): void {
  if (!condition) throw new Error(`This network does not fit together: ${what}.`);
}
