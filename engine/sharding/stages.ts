import type { NetworkPlan } from '../../network/plan.js';
import { productsOf } from '../../network/products.js';
import { valuesOf } from '../../network/slot-assignment.js';
import type { LoadableTensor } from '../directory/source-tensors.js';
import { type GroupShape, RankPlanError } from './rank-shape.js';

/** Ops [begin, end) of a plan, and the values that come from the stage before and go to the next; null: none. */
export interface Stage {
  begin: number;
  end: number;
  receives: number | null;
  sends: number | null;
}

/** A plan cut into stages. */
export interface Stages {
  stages: Stage[];
  /** The ops from `begin` on, which make the output of `value`, are rank 0's; null: they are the last stage's. */
  head: Head | null;
}

interface Head {
  begin: number;
  value: number;
}

/** A network and the tensors that its weights are stored in. */
export interface StoredPlan {
  plan: NetworkPlan;
  tensors: readonly LoadableTensor[];
}

/**
 * Cuts a plan into stages where one value alone is alive: the rows of the hidden state.
 *
 *   embedding | layer 0 || layer 1 | layer 2 | row of the last token || norm, logits     2 stages: hidden rows go over ||
 *   stage 0             stage 1                                        rank 0 again
 *
 * A step reads all weights, so the bytes of each stage's are as even as can be: the stage with the most holds up the others. The output
 * layer is often as large as several layers. Rank 0 has it where it is a stage alone, since a hidden row is much shorter than its row of
 * logits; ranks that share a stage would wait for the last one with it.
 *
 * @throws RankPlanError if there are fewer layers than stages, or more than one value is alive between two layers
 */
export function cutIntoStages(stored: StoredPlan, shape: GroupShape): Stages {
  const { plan } = stored;
  const { pipelineParallelSize: count } = shape;
  const head = headOf(plan, shape);
  const last = head?.begin ?? plan.ops.length;
  if (count === 1) return { stages: [{ begin: 0, end: last, receives: null, sends: null }], head };
  const begins = [{ at: 0, value: null }, ...cutsBetweenLayers(plan)];
  if (begins.length < count) {
    throw new RankPlanError(
      `This model has ${begins.length} layers, which ${count} stages cannot share; at most ${begins.length} are possible.`,
    );
  }
  const bytes = bytesOfOps(stored);
  const costs = begins.map(({ at }, layer) => sum(bytes.slice(at, begins[layer + 1]?.at ?? last)));
  costs[0]! += sum(bytes.slice(last));
  const firsts = dealEvenly(costs, count).map((layer) => begins[layer]!);
  const stages = firsts.map(({ at, value }, stage) => ({
    begin: at,
    end: firsts[stage + 1]?.at ?? last,
    receives: value,
    sends: firsts[stage + 1]?.value ?? null,
  }));
  return { stages, head };
}

/** Rows of a step for which products compute about as long as they read their weights; with many fewer, reading is what takes time. */
const ROWS_WORTH_READING = 16;

/**
 * Fewest requests of a micro-batch for which stages that work side by side are faster than all requests together. A stage takes a + b x rows,
 * a for its weights and b for each row. With P stages of which the slowest has s times its share, P micro-batches of r rows take
 * s (a + b r), and all together a + b P r. So r must be more than (a / b) (s - 1) / (P - s): none where the stages are even.
 */
export function leastMicroBatch(stored: StoredPlan, shape: GroupShape): number {
  const { stages, head } = cutIntoStages(stored, shape);
  const bytes = bytesOfOps(stored);
  const costs = stages.map(({ begin, end }) => sum(bytes.slice(begin, end)));
  if (head !== null) costs[0]! += sum(bytes.slice(head.begin));
  const slowest = (stages.length * Math.max(...costs)) / sum(costs);
  if (!(slowest < stages.length)) return 1;
  return Math.max(1, Math.ceil((ROWS_WORTH_READING * (slowest - 1)) / (stages.length - slowest)));
}

function headOf(plan: NetworkPlan, { tensorParallelSize, pipelineParallelSize }: GroupShape): Head | null {
  if (pipelineParallelSize === 1 || tensorParallelSize > 1) return null;
  const select = plan.ops.findIndex(({ op }) => op === 'selectRows');
  if (select === -1) return null;
  const [value, ...more] = aliveAt(plan, select + 1);
  if (value === undefined || more.length > 0 || plan.values[value]!.width >= plan.outputWidth) return null;
  return { begin: select + 1, value };
}

/** Bytes of the weights that each op's product reads. */
function bytesOfOps({ plan, tensors }: StoredPlan): number[] {
  const bytes = new Map<string, number>();
  for (const { name, byteLength } of tensors) bytes.set(name, (bytes.get(name) ?? 0) + byteLength);
  return plan.ops.map((op) => sum(productsOf(op).map(({ weight }) => bytes.get(weight) ?? 0)));
}

/**
 * Parts consecutive things into `parts` whose sums are as even as can be, by the least sum of squares; returns where each part begins.
 *
 *   11 4 4 4 4 4 4    2 parts    0 2    15 and 20
 */
function dealEvenly(costs: readonly number[], parts: number): number[] {
  const total = sum(costs) || 1;
  const before = costs.map((_, end) => sum(costs.slice(0, end)) / total);
  before.push(1);
  // best[end]: the least for the things before `end` in as many parts as there have been; from: where the last of them begins.
  let best = before.map((sum) => sum ** 2);
  best[0] = Number.POSITIVE_INFINITY;
  const from: number[][] = [];
  for (let part = 1; part < parts; part++) {
    const begins: number[] = [];
    best = before.map((sum, end) => {
      let least = Number.POSITIVE_INFINITY;
      // Of parts that are as even as others the first ones get more.
      for (let begin = end - 1; begin > 0; begin--) {
        const squares = best[begin]! + (sum - before[begin]!) ** 2;
        if (squares < least - ROUNDING) [least, begins[end]] = [squares, begin];
      }
      return least;
    });
    from.push(begins);
  }
  const firsts = [costs.length];
  for (const begins of from.reverse()) firsts.unshift(begins[firsts[0]!]!);
  return [0, ...firsts.slice(0, -1)];
}

const ROUNDING = 1e-12;

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

/** A place where one value alone is alive. */
interface Cut {
  at: number;
  value: number;
}

/**
 * Where each layer but the first begins. A layer has an op that writes keys and values, or ops that keep states, or both: more than one
 * value is alive between them.
 */
function cutsBetweenLayers(plan: NetworkPlan): Cut[] {
  const cuts: Cut[] = [];
  const kept = [...plan.ops.entries()].filter(([, op]) => op.op === 'ropeAndCache' || 'state' in op);
  for (const [place, [index, op]] of kept.slice(1).entries()) {
    const [before, opBefore] = kept[place]!;
    const cut = cutBetween(plan, before, index);
    if (cut !== null) cuts.push(cut);
    else if (!('state' in op || 'state' in opBefore)) {
      throw new RankPlanError(
        `Between ops ${before} and ${index} of this model more than one value is alive, so it cannot be cut into stages.`,
      );
    }
  }
  return cuts;
}

/** The last place between an op of one layer and that of the next where one value is alive; null: there is none. */
function cutBetween(plan: NetworkPlan, layer: number, next: number): Cut | null {
  for (let at = next; at > layer; at--) {
    const alive = aliveAt(plan, at);
    if (alive.length === 1) return { at, value: alive[0]! };
  }
  return null;
}

/** Values that ops before `at` write and ops from `at` on read. */
function aliveAt({ ops, logits }: NetworkPlan, at: number): number[] {
  const written = new Set(ops.slice(0, at).flatMap((op) => valuesOf(op).writes));
  const rewritten = new Set<number>();
  const alive = new Set<number>();
  for (const op of ops.slice(at)) {
    const { reads, writes } = valuesOf(op);
    for (const value of reads) if (written.has(value) && !rewritten.has(value)) alive.add(value);
    for (const value of writes) rewritten.add(value);
  }
  if (written.has(logits) && !rewritten.has(logits)) alive.add(logits);
  return [...alive];
}
