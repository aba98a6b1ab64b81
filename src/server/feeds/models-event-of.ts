import type {
  AdapterActivity,
  BatchStatistics,
  InferModel,
  ModelActivity,
} from '../../serving/infer-model.js';
import type { IndexRow, ModelRepository } from '../../serving/model-repository.js';
import type { ModelRow, ModelsEvent, ModelWork, SizeCount } from './models-event.js';

/** Where an event is read from. */
export type ModelsSource = Pick<ModelRepository, 'rows' | 'loaded'>;

/** Most rows of an event, so that it stays small however many models there are. */
export const MAX_ROWS = 50;
/** Most characters of a reason: that of a failed load may quote a whole file. */
const MAX_REASON = 300;
/** Most names of adapters of a row. */
const MAX_NAMES = 20;
/** Batch sizes that are counted apart; where there are more, ranges of sizes are, of which there are at most 19. */
const MAX_SIZES = 16;
/** A model counts as one in use so long after its latest request, in milliseconds. */
const IN_USE_MS = 60_000;

/** A row of the index with the version that answers by it, and what that does. */
interface Found {
  row: IndexRow;
  model: InferModel | null;
  activity: ModelActivity | null;
}

/** What the event says of the models, all but its time. */
export function modelsEventOf(source: ModelsSource, nowMs: number): Omit<ModelsEvent, 'v' | 'timeMs'> {
  const byVersion = new Map(source.loaded().map((model) => [keyOf(model.config.name, model.version), model]));
  const found = source.rows().map((row): Found => {
    const model = byVersion.get(keyOf(row.name, row.version ?? '')) ?? null;
    return { row, model, activity: model?.activity() ?? null };
  });
  const states: ModelsEvent['states'] = {};
  let [waiting, running] = [0, 0];
  for (const { row, activity } of found) {
    const state = row.state ?? 'UNKNOWN';
    states[state] = (states[state] ?? 0) + 1;
    waiting += activity?.waiting ?? 0;
    running += activity?.running ?? 0;
  }
  return { models: found.length, states, waiting, running, rows: foremost(found, nowMs).map(rowOf) };
}

function keyOf(name: string, version: string): string {
  return `${name}/${version}`;
}

/** Those that a reader wants to see of too many, in the order of the index. */
function foremost(found: readonly Found[], nowMs: number): readonly Found[] {
  if (found.length <= MAX_ROWS) return found;
  const ranked = found.map((one, place) => ({ one, place, rank: rankOf(one, nowMs) }));
  const last = ({ one }: (typeof ranked)[number]) => one.activity?.lastInference ?? 0;
  ranked.sort((a, b) => {
    // Those in use keep their order, so that a page does not flicker.
    if (a.rank !== b.rank || a.rank === RANKS.inUse) return a.rank - b.rank || a.place - b.place;
    return last(b) - last(a) || a.place - b.place;
  });
  return ranked
    .slice(0, MAX_ROWS)
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one);
}

const RANKS = { changing: 0, inUse: 1, ready: 2, away: 3 } as const;

function rankOf({ row, activity }: Found, nowMs: number): number {
  const { state, reason = '' } = row;
  if (state === 'LOADING' || state === 'UNLOADING') return RANKS.changing;
  if (activity === null) return reason === '' || reason === 'unloaded' ? RANKS.away : RANKS.changing;
  if (activity.instances.some((one) => one === 'dead' || one === 'starting')) return RANKS.changing;
  const isInUse = activity.waiting + activity.running > 0 || activity.lastInference > nowMs - IN_USE_MS;
  return isInUse ? RANKS.inUse : RANKS.ready;
}

function rowOf({ row: { name, version, state, reason = '' }, model, activity }: Found): ModelRow {
  return {
    name,
    version: version ?? null,
    state: state ?? null,
    reason: reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON - 1)}…` : reason,
    work: model === null || activity === null ? null : workOf(model, activity),
  };
}

function workOf(model: InferModel, activity: ModelActivity): ModelWork {
  const { waiting, running, instances, restarts, sequences = null, adapters } = activity;
  const { execution_count, inference_stats, batch_stats } = model.statistics();
  const { success, queue } = inference_stats;
  const states = { busy: 0, idle: 0, starting: 0, dead: 0 };
  for (const one of instances) states[one]++;
  const rows = batch_stats.reduce(
    (sum, { batch_size, compute_infer }) => sum + batch_size * compute_infer.count,
    0,
  );
  const computeNs = batch_stats.reduce(
    (sum, { compute_input, compute_infer, compute_output }) =>
      sum + compute_input.ns + compute_infer.ns + compute_output.ns,
    0,
  );
  return {
    kind: model.kind,
    backend: model.config.backend,
    instances: states,
    restarts,
    waiting,
    running,
    answered: success.count,
    failures: model.failures(),
    batches: execution_count,
    rows,
    sizes: sizesOf(batch_stats),
    sequences,
    adapters: adapters === undefined ? null : firstOf(adapters),
    queueMs: meanMs(queue.ns, queue.count),
    computeMs: meanMs(computeNs, execution_count),
  };
}

function firstOf({ names, changes }: AdapterActivity): ModelWork['adapters'] {
  return { count: names.length, names: names.slice(0, MAX_NAMES), changes };
}

/** To a microsecond, which is more than is shown. Zero nanoseconds mean not measured. */
function meanMs(ns: number, count: number): number | null {
  return count === 0 || ns === 0 ? null : Math.round(ns / count / 1000) / 1000;
}

/**
 * How many batches had which sizes: each size apart, or where there are too many, ranges that end at powers of two and halfway
 * between them:
 *
 *   1 | 2 | 3 | 4 | 5..6 | 7..8 | 9..12 | 13..16 | 17..24 | ...
 */
export function sizesOf(batches: readonly BatchStatistics[]): SizeCount[] {
  const counts = batches.map(({ batch_size, compute_infer }) => [batch_size, compute_infer.count] as const);
  if (counts.length <= MAX_SIZES) return counts.map(([size, count]) => [size, size, count]);
  const ranges = new Map<number, SizeCount>();
  for (const [size, count] of counts) {
    const [from, to] = rangeOf(size);
    ranges.set(to, [from, to, count + (ranges.get(to)?.[2] ?? 0)]);
  }
  return [...ranges.values()];
}

function rangeOf(size: number): [from: number, to: number] {
  if (size <= 2) return [size, size];
  const power = 2 ** Math.ceil(Math.log2(size));
  const half = 0.75 * power;
  return size <= half ? [power / 2 + 1, half] : [half + 1, power];
}
