import type { SimulationInput } from '../../../../engine/simulation/simulation-input.js';
import type { NaiveBlock } from './naive-pool.js';
import type { NaiveRequest } from './naive-request.js';

export interface OracleCapacity {
  scheduled: NaiveRequest[];
  paused: NaiveRequest[];
}

/** Requests that may run, and those that are paused for them. */
export function capacityRules(
  input: SimulationInput,
  active: readonly NaiveRequest[],
  free: number,
): OracleCapacity {
  if (input.policy === 'MAX_UTILIZATION') return maxUtilization(input, active, free);
  const generating = active.filter(({ isGenerating }) => isGenerating);
  const isStatic = input.policy === 'STATIC_BATCH';
  const pending = isStatic && generating.length > 0 ? [] : active.filter(({ isGenerating }) => !isGenerating);
  const scheduled: NaiveRequest[] = [];
  let left = free;
  for (const request of generating.slice(0, input.maxNumRequests)) {
    scheduled.push(request);
    left -= request.blocksToCompletion;
  }
  // A place for every request that generates comes before anything else.
  if (generating.length > scheduled.length) return { scheduled, paused: [] };
  for (const request of pending) {
    if (!isStatic && waitsForReuse(input, request, active, scheduled)) continue;
    if (scheduled.length === input.maxNumRequests || request.blocksToCompletion > left) break;
    scheduled.push(request);
    left -= request.blocksToCompletion;
  }
  if (scheduled.length > 0) return { scheduled, paused: [] };
  // If these rules let no request run, contexts between two chunks run as far as they fit.
  for (const request of active.filter(({ hasStarted }) => hasStarted)) {
    if (scheduled.length === input.maxNumRequests) break;
    if (request.blocksToCompletion > left) continue;
    scheduled.push(request);
    left -= request.blocksToCompletion;
  }
  return { scheduled, paused: [] };
}

function maxUtilization(
  input: SimulationInput,
  active: readonly NaiveRequest[],
  free: number,
): OracleCapacity {
  const scheduled: NaiveRequest[] = [];
  const paused: NaiveRequest[] = [];
  let end = active.length;
  for (let current = 0; current < end; ) {
    const request = active[current]!;
    if (waitsForReuse(input, request, active, scheduled)) {
      current += 1;
      continue;
    }
    const taken = scheduled.reduce((sum, { blocksForThisStep }) => sum + blocksForThisStep, 0);
    const left = free + freedBy(paused) - taken;
    if (request.blocksForThisStep <= left && scheduled.length < input.maxNumRequests) {
      scheduled.push(request);
      current += 1;
      continue;
    }
    const victim = active.slice(current, end).findLast(({ hasStarted }) => hasStarted);
    if (!victim) break;
    paused.push(victim);
    end = active.indexOf(victim);
  }
  return { scheduled, paused };
}

/** Blocks that no request holds any more once these give theirs back. */
function freedBy(paused: readonly NaiveRequest[]): number {
  const released = new Map<NaiveBlock, number>();
  for (const block of paused.flatMap(({ blocks, otherBeams }) => [...blocks, ...otherBeams])) {
    released.set(block, (released.get(block) ?? 0) + 1);
  }
  return [...released].filter(([block, times]) => block.holders === times).length;
}

/** Its first prompt block that is full and not kept is one that another context is about to write. */
function waitsForReuse(
  input: SimulationInput,
  request: NaiveRequest,
  active: readonly NaiveRequest[],
  scheduled: readonly NaiveRequest[],
): boolean {
  if (!input.enableBlockReuse || request.isGenerating || request.hasStarted) return false;
  const size = input.tokensPerBlock;
  const missing = request.firstMissingBlock(size);
  if (missing === null) return false;
  const writers = active.filter(
    (other) => !other.isGenerating && (other.hasStarted || scheduled.includes(other)),
  );
  return writers.some((writer) => writer.fullPromptBlocks(size).includes(missing));
}
