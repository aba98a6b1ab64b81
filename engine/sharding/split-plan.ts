import { option, says } from '../../base/named-text.js';
import { readsOtherCaches } from '../../network/cache-layers.js';
import type { NetworkPlan, PlanOp, PlanWeight } from '../../network/plan.js';
import { promptRowWidth } from '../../network/prompt-rows.js';
import { assignSlots, valuesOf } from '../../network/slot-assignment.js';
import { CHANNELS, type ColumnPart, type RankOp, type RankPlan, type RankWeight } from './rank-plan.js';
import {
  dealColumns,
  dealHeads,
  type GroupShape,
  type HeadShare,
  RankPlanError,
  ranksOfStage,
  type Share,
  sizeOf,
} from './rank-shape.js';
import { cutIntoStages, type Stages, type StoredPlan } from './stages.js';

/**
 * Returns the part of a plan that one rank of a group runs.
 * @throws RankPlanError if the model cannot be parted so
 */
export function splitPlan(stored: StoredPlan, shape: GroupShape, rank: number): RankPlan {
  // Before what another division of ranks would mend.
  checkHeads(stored.plan);
  checkExperts(stored.plan, shape);
  checkDistances(stored.plan);
  checkStates(stored.plan, shape);
  const stages = cutIntoStages(stored, shape);
  const stage = Math.floor(rank / shape.tensorParallelSize);
  return new StageWriter(stored.plan, shape, rank).write(stages, stage);
}

/** Ranks of a stage share each product, and nothing yet says which of them would have an expert. */
function checkExperts({ ops }: NetworkPlan, { tensorParallelSize }: GroupShape): void {
  if (tensorParallelSize === 1 || !ops.some(({ op }) => op === 'experts')) return;
  throw new RankPlanError(
    says`This model has mixtures of experts, whose layers ranks cannot share: ${option('tensorParallelSize')} must be 1, but it is ${tensorParallelSize}; ${option('pipelineParallelSize')} deals whole layers.`,
  );
}

/** Nothing yet says which rank of a stage would have which heads of a state. */
function checkStates({ states }: NetworkPlan, { tensorParallelSize }: GroupShape): void {
  if (tensorParallelSize === 1 || states === undefined) return;
  throw new RankPlanError(
    says`Layers of this model keep states of sequences, which ranks cannot share: ${option('tensorParallelSize')} must be 1, but it is ${tensorParallelSize}; ${option('pipelineParallelSize')} deals whole layers.`,
  );
}

/** Ranks deal the same heads in all layers. */
function checkHeads(plan: NetworkPlan): void {
  const { caches, attention } = plan;
  const { layerHeads = [] } = attention;
  if (readsOtherCaches(plan))
    throw new RankPlanError(
      'Layers of this model read what other layers keep of a sequence, which ranks cannot share.',
    );
  const [first] = caches;
  const isEven =
    layerHeads.every((heads) => heads === layerHeads[0]) &&
    caches.every(({ kvHeads, keyDim }) => kvHeads === first?.kvHeads && keyDim === first.keyDim);
  if (!isEven)
    throw new RankPlanError('Layers of this model have different heads, which ranks cannot share.');
}

/** Each rank would have the tables of its own heads alone, which nothing yet cuts. */
function checkDistances({ attention }: NetworkPlan): void {
  if (attention.distances === undefined) return;
  throw new RankPlanError(
    'Scores of this model depend on the distance of two tokens, by tables that ranks cannot share.',
  );
}

type LinearOp = Extract<PlanOp, { op: 'linear' | 'gatedLinear' }>;

/** Writes the ops of one rank's stage, and knows which values it has whole and of which it has some columns. */
class StageWriter {
  readonly #plan: NetworkPlan;
  readonly #shape: GroupShape;
  readonly #rank: number;
  readonly #ranks: number[];
  /** Place of the rank in its stage. */
  readonly #place: number;
  readonly #heads: HeadShare[];
  /**
   * Values that hold queries, keys and values: a rank has its own heads, narrower, and no op reads all of it.
   */
  readonly #qkvs: ReadonlySet<number>;
  readonly #weights = new Map<string, RankWeight>();
  readonly #ops: RankOp[] = [];
  readonly #origins: number[] = [];
  /** Columns of values that are not whole. */
  readonly #parts = new Map<number, ColumnPart[]>();
  /** Index of each layer's cache in the stage. */
  readonly #layers = new Map<number, number>();
  /** States of the stage, in the order of its ops. */
  readonly #states: number[] = [];

  constructor(plan: NetworkPlan, shape: GroupShape, rank: number) {
    this.#plan = plan;
    this.#shape = shape;
    this.#rank = rank;
    this.#ranks = ranksOfStage(shape, Math.floor(rank / shape.tensorParallelSize));
    this.#place = rank % shape.tensorParallelSize;
    this.#heads = headsOf(plan, shape);
    this.#qkvs = new Set(plan.ops.flatMap((op) => (op.op === 'ropeAndCache' ? [op.qkv] : [])));
  }

  write({ stages, head }: Stages, index: number): RankPlan {
    const { begin, end, receives, sends } = stages[index]!;
    const { logits, ops } = this.#plan;
    const isLast = index === stages.length - 1;
    if (receives !== null) {
      const before = ranksOfStage(this.#shape, index - 1);
      this.#exchange(receives, CHANNELS.nextStage, this.#partsAtCut(receives, before), this.#ranks);
    }
    for (let at = begin; at < end; at++) this.#add(this.#plan.ops[at]!, at);
    if (sends !== null) {
      const readers = ranksOfStage(this.#shape, index + 1);
      this.#exchange(sends, CHANNELS.nextStage, this.#partsAtCut(sends, this.#ranks), readers);
    }
    if (head !== null) {
      const { width } = this.#plan.values[head.value]!;
      const parts = [{ rank: sizeOf(this.#shape) - 1, first: 0, count: width }];
      this.#exchange(head.value, CHANNELS.output, parts, [0]);
      if (this.#rank === 0) for (let at = head.begin; at < ops.length; at++) this.#add(ops[at]!, at);
    } else if (isLast) this.#sendOutput(this.#ranks);
    else if (this.#rank === 0) this.#sendOutput(ranksOfStage(this.#shape, stages.length - 1));
    return this.#finish(this.#rank === 0 ? logits : -1);
  }

  /** Columns of the hidden rows as the last product before a cut leaves them; the same seen from both sides of the cut. */
  #partsAtCut(value: number, ranks: readonly number[]): ColumnPart[] {
    return partsOf(dealColumns(this.#plan.values[value]!.width, ranks.length), ranks);
  }

  /** Brings the output to rank 0. */
  #sendOutput(ranks: readonly number[]): void {
    const { logits, outputWidth } = this.#plan;
    const op = this.#plan.ops.findLast((one) => valuesOf(one).writes.includes(logits))!;
    const isSplit =
      ranks.length > 1 &&
      (op.op === 'linear' || op.op === 'gatedLinear' || op.op === 'softCap' || op.op === 'xielu');
    const parts = isSplit
      ? partsOf(dealColumns(outputWidth, ranks.length), ranks)
      : [{ rank: ranks[0]!, first: 0, count: outputWidth }];
    if (parts.length > 1 || parts[0]!.rank !== 0) this.#exchange(logits, CHANNELS.output, parts, [0]);
  }

  #exchange(value: number, channel: number, parts: ColumnPart[], readers: number[]): void {
    const has = parts.some(({ rank }) => rank === this.#rank);
    const gets = readers.includes(this.#rank);
    if (has || gets) this.#push({ op: 'exchange', value, channel, parts, readers }, -1);
    if (gets) this.#parts.delete(value);
  }

  /** Completes a value that an op reads whole. */
  #whole(value: number): void {
    const parts = this.#parts.get(value);
    if (parts !== undefined) this.#exchange(value, CHANNELS.stage, parts, this.#ranks);
  }

  #add(op: PlanOp, origin: number): void {
    switch (op.op) {
      case 'linear':
      case 'gatedLinear':
        this.#addLinear(op, origin);
        break;
      case 'rmsNormHeads':
        this.#addHeadNorm(op, origin);
        break;
      case 'layerNormHeads':
        this.#addOwnHeadNorm(op, origin);
        break;
      case 'ropeAndCache':
        this.#push({ ...op, layer: this.#layer(op.layer) }, origin);
        this.#keepWeights(op);
        break;
      case 'attention':
        this.#addAttention(op, origin);
        break;
      case 'softCap':
      case 'xielu': {
        const own = this.#parts.get(op.value)?.find(({ rank }) => rank === this.#rank);
        if (!this.#parts.has(op.value)) this.#push(op, origin);
        else if (own !== undefined) this.#push({ ...op, firstColumn: own.first, columns: own.count }, origin);
        break;
      }
      case 'shortConv':
      case 'gatedDelta':
      case 'selectiveScan':
        this.#addStateful(op, origin);
        break;
      default:
        for (const value of valuesOf(op).reads) this.#whole(value);
        this.#push(op, origin);
        for (const value of valuesOf(op).writes) this.#parts.delete(value);
        this.#keepWeights(op);
    }
  }

  /** An op that keeps a state; ranks of a stage do not share it. */
  #addStateful(op: Extract<PlanOp, { state: number }>, origin: number): void {
    this.#states.push(op.state);
    this.#push({ ...op, state: this.#states.length - 1 }, origin);
    this.#keepWeights(op);
  }

  #addLinear(op: LinearOp, origin: number): void {
    this.#whole(op.input);
    if (this.#shape.tensorParallelSize === 1) {
      this.#push(op, origin);
      this.#keepWeights(op);
      return;
    }
    const isQkv = this.#qkvs.has(op.output);
    const width = this.#plan.values[op.output]!.width;
    const parts = partsOf(dealColumns(width, this.#ranks.length), this.#ranks);
    const own = parts.find(({ rank }) => rank === this.#rank);
    const residual = op.op === 'linear' ? op.residual : null;
    if (residual !== null && !isSame(this.#parts.get(residual), parts)) this.#whole(residual);
    const slices = isQkv ? this.#qkvSlices() : own === undefined ? [] : slicesOf(op, own, width);
    if (slices.length > 0) {
      const weight = this.#part(op.weight, slices);
      const bias = op.bias === null ? null : this.#part(op.bias, slices);
      this.#push({ ...op, weight, bias, ...(isQkv ? {} : { firstColumn: own!.first }) }, origin);
    }
    if (!isQkv) this.#parts.set(op.output, parts);
  }

  #addHeadNorm(op: Extract<PlanOp, { op: 'rmsNormHeads' }>, origin: number): void {
    this.#keepWeights(op);
    if (this.#shape.tensorParallelSize === 1) {
      this.#push(op, origin);
      return;
    }
    if (!this.#qkvs.has(op.value)) {
      throw new RankPlanError(`Op ${origin} of this model norms heads of a value that several ranks share.`);
    }
    const width = op.weight === null ? op.columns : this.#weight(op.weight).columns;
    for (const { first, count, local } of this.#ownColumns(op.first, op.heads * width)) {
      if ((first - op.first) % width !== 0 || count % width !== 0) {
        throw new RankPlanError(
          `Op ${origin} of this model norms queries or keys of all heads together, which several ranks share.`,
        );
      }
      this.#push({ ...op, first: local, heads: count / width }, origin);
    }
  }

  /** Heads with weights of their own: a rank has the weights of its heads. */
  #addOwnHeadNorm(op: Extract<PlanOp, { op: 'layerNormHeads' }>, origin: number): void {
    if (this.#shape.tensorParallelSize === 1) {
      this.#push(op, origin);
      this.#keepWeights(op);
      return;
    }
    const { columns } = this.#weight(op.weight);
    const width = columns / op.heads;
    for (const { first, count, local } of this.#ownColumns(op.first, columns)) {
      const weight = this.#part(op.weight, [{ first: first - op.first, count }]);
      this.#push({ ...op, first: local, heads: count / width, weight }, origin);
    }
  }

  /** Those of `count` columns of a qkv value from `begin` on that the rank has; local: where its own value has them. */
  #ownColumns(begin: number, count: number): (Share & { local: number })[] {
    let local = 0;
    return this.#qkvSlices().flatMap((slice) => {
      const first = Math.max(slice.first, begin);
      const own = { first, count: Math.min(slice.first + slice.count, begin + count) - first };
      const at = local + first - slice.first;
      local += slice.count;
      return own.count > 0 ? [{ ...own, local: at }] : [];
    });
  }

  #addAttention(op: Extract<PlanOp, { op: 'attention' }>, origin: number): void {
    const { valueDim } = this.#plan.caches[op.layer]!;
    const layer = this.#layer(op.layer);
    if (this.#shape.tensorParallelSize === 1) {
      this.#push({ ...op, layer }, origin);
      this.#keepWeights(op);
      return;
    }
    const { sinkLogits } = op;
    const shares = this.#heads.map(({ queries }) => ({
      first: queries.first * valueDim,
      count: queries.count * valueDim,
    }));
    const { first } = shares[this.#place]!;
    const ownLogits = sinkLogits !== undefined && {
      sinkLogits: this.#part(sinkLogits, [this.#heads[this.#place]!.queries]),
    };
    this.#push({ ...op, layer, ...ownLogits, firstColumn: first }, origin);
    this.#parts.set(op.output, partsOf(shares, this.#ranks));
  }

  /** Columns of queries, keys and values of this rank's heads. */
  #qkvSlices(): Share[] {
    const { numHeads } = this.#plan.attention;
    const { kvHeads, keyDim, valueDim } = oneCacheShape(this.#plan);
    const { queries, keys } = this.#heads[this.#place]!;
    const firstKey = numHeads * keyDim;
    const firstValue = firstKey + kvHeads * keyDim;
    return [
      { first: queries.first * keyDim, count: queries.count * keyDim },
      { first: firstKey + keys.first * keyDim, count: keys.count * keyDim },
      { first: firstValue + keys.first * valueDim, count: keys.count * valueDim },
    ];
  }

  #layer(layer: number): number {
    const known = this.#layers.get(layer);
    if (known !== undefined) return known;
    this.#layers.set(layer, this.#layers.size);
    return this.#layers.size - 1;
  }

  #push(op: RankOp, origin: number): void {
    this.#ops.push(op);
    this.#origins.push(origin);
  }

  #weight(name: string): PlanWeight {
    return this.#plan.weights.find((weight) => weight.name === name)!;
  }

  /** Keeps the weights that the op names in whatever field. */
  #keepWeights(op: PlanOp): void {
    const names = new Set(textsIn(op));
    for (const weight of this.#plan.weights)
      if (names.has(weight.name)) this.#weights.set(weight.name, weight);
  }

  /** The rank's part of a weight; one tensor may be needed whole too, as the embedding that is the output layer. */
  #part(name: string, slices: Share[]): string {
    const whole = this.#weight(name);
    const count = slices.reduce((sum, slice) => sum + slice.count, 0);
    const own = `${name} (rank ${this.#rank})`;
    const isMatrix = whole.kind === 'matrix';
    const of = isMatrix ? whole.rows : whole.columns;
    const shape = isMatrix ? { rows: count } : { columns: count };
    this.#weights.set(own, { ...whole, ...shape, name: own, part: { tensor: name, of, slices } });
    return own;
  }

  #finish(logits: number): RankPlan {
    const { attention, caches, states, values, ops: _ops, slots: _slots, ...header } = this.#plan;
    const isSplit = this.#shape.tensorParallelSize > 1;
    const { queries, keys } = this.#heads[this.#place]!;
    const own = [...this.#layers.keys()].map((layer) => ({ ...caches[layer]!, kvHeads: keys.count }));
    const qkvWidth = isSplit ? this.#qkvSlices().reduce((sum, { count }) => sum + count, 0) : 0;
    const used = [...new Set(this.#ops.flatMap((op) => Object.values(touched(op)).flat()))].sort(
      (a, b) => a - b,
    );
    const indexOf = new Map(used.map((value, index) => [value, index]));
    const sizes = used.map((value) => ({
      rows: values[value]!.rows,
      width: isSplit && this.#qkvs.has(value) ? qkvWidth : values[value]!.width,
    }));
    const ops = this.#ops.map((op) => renumbered(op, (value) => indexOf.get(value)!));
    const output = logits === -1 ? -1 : indexOf.get(logits)!;
    const touch = (op: RankOp) => touchedBy(op, this.#rank);
    return {
      ...header,
      ...assignSlots(sizes, ops, output, touch),
      rank: this.#rank,
      ranks: sizeOf(this.#shape),
      promptRowWidth: promptRowWidth(this.#plan),
      attention: {
        ...(own.length === 0 ? withoutRope(attention) : attention),
        numLayers: own.length,
        numHeads: queries.count,
      },
      caches: own,
      ...(states !== undefined && { states: this.#states.map((state) => states[state]!) }),
      weights: [...this.#weights.values()],
      ops,
      logits: output,
      origins: this.#origins,
    };
  }
}

/** All texts among the fields of an op, those of its lists and parts included. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** A stage whose layers all keep states rotates nothing. */
function withoutRope({ ropeAxes: _axes, ...attention }: NetworkPlan['attention']): NetworkPlan['attention'] {
  return { ...attention, rotaryDim: 0, ropeTables: [] };
}

/** Rows of a product's weight for some columns of its output; a gated one stacks gate over up. */
function slicesOf({ op }: LinearOp, { first, count }: Share, width: number): Share[] {
  const own = { first, count };
  return op === 'linear' ? [own] : [own, { first: width + first, count }];
}

function partsOf(shares: readonly Share[], ranks: readonly number[]): ColumnPart[] {
  return shares.map((share, place) => ({ rank: ranks[place]!, ...share })).filter(({ count }) => count > 0);
}

function isSame(a: readonly ColumnPart[] | undefined, b: readonly ColumnPart[]): boolean {
  return (
    a !== undefined &&
    a.length === b.length &&
    a.every(({ rank, first }, i) => b[i]!.rank === rank && b[i]!.first === first)
  );
}

/** Heads of each rank of a stage; a plan of which no layer attends has stages of one rank alone. */
function headsOf(plan: NetworkPlan, { tensorParallelSize }: GroupShape): HeadShare[] {
  const { numHeads } = plan.attention;
  if (plan.caches.length === 0 && tensorParallelSize === 1) {
    const all = { first: 0, count: numHeads };
    return [{ queries: all, keys: all }];
  }
  return dealHeads(numHeads, oneCacheShape(plan).kvHeads, tensorParallelSize);
}

function oneCacheShape({ caches }: NetworkPlan) {
  const [first] = caches;
  if (first === undefined)
    throw new RankPlanError('This model keeps no heads of attention that ranks could share.');
  return first;
}

function touched(op: RankOp): { reads: number[]; writes: number[] } {
  return op.op === 'exchange' ? { reads: [op.value], writes: [op.value] } : valuesOf(op);
}

/** Values that an op of a rank reads and writes; an exchange reads what the rank has and writes what it gets. */
function touchedBy(op: RankOp, rank: number): { reads: number[]; writes: number[] } {
  if (op.op !== 'exchange') return valuesOf(op);
  return {
    reads: op.parts.some((part) => part.rank === rank) ? [op.value] : [],
    writes: op.readers.includes(rank) ? [op.value] : [],
  };
}

/** Fields of ops that name values. */
const VALUE_FIELDS = [
  'input',
  'other',
  'scores',
  'output',
  'residual',
  'qkv',
  'value',
  'by',
  'gates',
  'steps',
] as const;

function renumbered(op: RankOp, indexOf: (value: number) => number): RankOp {
  const changed: Record<string, unknown> = { ...op };
  for (const field of VALUE_FIELDS) {
    if (typeof changed[field] === 'number') changed[field] = indexOf(changed[field]);
  }
  return changed as unknown as RankOp;
}
