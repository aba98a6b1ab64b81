import type { SimulationResult } from '../../../../engine/simulation/simulate.js';
import type { SimulationInput, SimulationRequest } from '../../../../engine/simulation/simulation-input.js';
import { capacityRules } from './capacity-rules.js';
import { microBatchRules } from './micro-batch-rules.js';
import { NaivePool } from './naive-pool.js';
import { NaiveRequest } from './naive-request.js';

/**
 * The scheduling rules a second time: written from their description alone, slowly and plainly, sharing no
 * code with what the engine runs. Everything is recounted in every iteration; nothing is remembered but what
 * a request is.
 */
export function oracle(input: SimulationInput): SimulationResult {
  const pool = new NaivePool(input.numBlocks, input.tokensPerBlock);
  const everybody = input.requests.map((request, index) => new NaiveRequest(request, index, input, pool));
  const result: SimulationResult = { iterations: [], requests: [] };
  for (let iteration = 0; everybody.some((request) => request.lastIteration < 0); iteration += 1) {
    const active = listOf(everybody, iteration);
    const { scheduled, paused } = capacityRules(input, active, pool.free);
    for (const request of paused) request.pause();
    const steps = microBatchRules(input, scheduled);
    for (const { request, tokens } of steps) request.allocate(tokens);
    const { used, free } = pool;
    const reused = everybody.reduce((sum, request) => sum + request.reusedBlocks, 0);
    result.iterations.push({
      iteration,
      active: active.map(({ id }) => id),
      scheduled: steps.map(({ request }) => request.step(iteration)),
      paused: paused.map(({ id }) => id),
      blocks: { free, used, reused },
    });
    for (const request of active) request.leaveIfDone(iteration);
  }
  result.requests = everybody.map(({ id, firstIteration, lastIteration, pauses, reusedBlocks }) => {
    return { id, firstIteration, lastIteration, pauses, reusedBlocks };
  });
  return result;
}

/** Descending priority, then arrival, then the order of the input. */
function listOf(everybody: readonly NaiveRequest[], iteration: number): NaiveRequest[] {
  const rank = ({ asked }: NaiveRequest) => asked.priority ?? 0.5;
  const arrival = ({ asked }: { asked: SimulationRequest }) => asked.arrivalIteration;
  return everybody
    .filter((request) => arrival(request) <= iteration && request.lastIteration < 0)
    .sort((a, b) => rank(b) - rank(a) || arrival(a) - arrival(b) || a.index - b.index);
}
