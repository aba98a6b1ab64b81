import type { SeatData } from '../../callbacks/ranks-options.js';
import type { CacheShape, StateShape } from '../../kvcache/cache-shape.js';
import { stateInputBytes } from '../../network/state-inputs.js';
import type { ExecutorKind } from '../executors/executor-kind.js';
import { loadAddon } from '../executors/native/load-addon.js';
import type { GroupHandle, RankSeat } from '../sharding/group.js';
import { splitPlan } from '../sharding/split-plan.js';
import type { StoredPlan } from '../sharding/stages.js';

/** Opens the group's memory as the rank of this seat. */
export function openSeat(data: SeatData): RankSeat & { group: GroupHandle } {
  const { rank, path, limitMs, tensorParallelSize, pipelineParallelSize } = data;
  const size = tensorParallelSize * pipelineParallelSize;
  return { ...placeOf(data, rank), group: new (loadAddon().RankGroup)({ path, rank, size, limitMs }) };
}

function placeOf(
  { tensorParallelSize, pipelineParallelSize, ranksHere: count }: SeatData,
  rank: number,
): RankSeat {
  const shape = { tensorParallelSize, pipelineParallelSize };
  // Either all ranks are on this machine, or this one alone is.
  return count === 1 ? { shape, rank } : { shape, rank, here: { index: rank, count } };
}

/** The seats whose memory is this machine's; without a group one engine that has none. */
export function ranksHere(seat: SeatData | undefined): { seat?: RankSeat }[] {
  if (seat === undefined) return [{}];
  const { ranksHere: count, rank } = seat;
  if (count === 1) return [{ seat: placeOf(seat, rank) }];
  return Array.from({ length: count }, (_, other) => ({ seat: placeOf(seat, other) }));
}

/** What a rank keeps of tokens, and of sequences as a whole; inputBytes: what it logs of a draft's token. */
export function keptBy(
  engine: StoredPlan,
  seat: RankSeat | undefined,
): { caches: CacheShape[]; states: StateShape[]; inputBytes: number } {
  const plan = seat === undefined ? engine.plan : splitPlan(engine, seat.shape, seat.rank);
  const { caches, states = [] } = plan;
  return { caches, states, inputBytes: stateInputBytes(plan) };
}

/** Threads of each rank: as many as are asked for, or its share of the machine's. */
export function threadsOf(
  kind: ExecutorKind,
  { threads }: { threads?: number | undefined },
  seat: SeatData | undefined,
): number {
  const all = kind.threadsFor(threads);
  return threads !== undefined || seat === undefined ? all : Math.max(1, Math.floor(all / seat.ranksHere));
}
