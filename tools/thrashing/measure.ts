import { simulate } from '../../engine/simulation/simulate.js';
import type { SchedulerPolicy } from '../../scheduler/tokens/types.js';
import { LoopHarness, makeRequest } from '../support/loop-harness.js';
import type { TraceRequest } from './overload-trace.js';

export interface Setting {
  policy: SchedulerPolicy;
  startHorizon?: number;
}

export interface Pool {
  numBlocks: number;
  tokensPerBlock: number;
  maxNumRequests: number;
  maxNumTokens: number;
}

/** All in iterations and tokens: the same on every machine. */
export interface Measured {
  pauses: number;
  /** Tokens that went through the model: contexts, those computed again, and one for each step of a generation. */
  computedTokens: number;
  /** Tokens among them of contexts that were computed a second time, or a third. */
  recomputedTokens: number;
  /** Iterations until the last request had ended. */
  iterations: number;
  /** Iterations from a request's arrival to its first and to its last token, means over all. */
  firstToken: number;
  lastToken: number;
}

const chunkPolicy = 'FIRST_COME_FIRST_SERVED';

/** Through `simulate`: every answer is as long as it may be. */
export function measureSimulation(trace: readonly TraceRequest[], pool: Pool, setting: Setting): Measured {
  const chunk = { unit: pool.tokensPerBlock, policy: chunkPolicy } as const;
  const result = simulate({ ...pool, ...setting, chunk, requests: [...trace] });
  const firstTokens = new Map<number, number>();
  let contextTokens = 0;
  let generationSteps = 0;
  for (const { iteration, scheduled } of result.iterations) {
    for (const { id, phase, contextBefore, contextAfter, generated } of scheduled) {
      contextTokens += contextAfter - contextBefore;
      if (phase === 'generation') generationSteps += 1;
      if (generated > 0 && !firstTokens.has(Number(id))) firstTokens.set(Number(id), iteration);
    }
  }
  const arrival = (id: number) => trace[id]!.arrivalIteration;
  return {
    pauses: result.requests.reduce((sum, { pauses }) => sum + pauses, 0),
    computedTokens: contextTokens + generationSteps,
    recomputedTokens: contextTokens - promptTokens(trace),
    iterations: result.iterations.length,
    firstToken: mean(trace, ({ id }) => firstTokens.get(id)! - arrival(id)),
    lastToken: mean(trace, ({ id }) => result.requests[id]!.lastIteration - arrival(id)),
  };
}

/**
 * Through the generation loop with an executor that computes no model. With `endId`, a token that it draws once in 100,
 * answers end before their limit, as real ones do; then a limit is what GUARANTEED_NO_EVICT reserves for nothing.
 */
export function measureLoop(
  trace: readonly TraceRequest[],
  pool: Pool,
  setting: Setting,
  endId: number | null,
): Measured {
  const { policy: schedulerPolicy, startHorizon } = setting;
  const { numBlocks, tokensPerBlock, maxNumRequests, maxNumTokens } = pool;
  const harness = new LoopHarness({
    ...{ schedulerPolicy, numBlocks, tokensPerBlock, maxNumTokens, chunkingPolicy: chunkPolicy },
    ...(startHorizon === undefined ? {} : { startHorizon }),
    maxNumSequences: trace.length,
    maxBatchSize: maxNumRequests,
    maxSeqLen: numBlocks * tokensPerBlock,
  });
  const firstTokens = new Map<number, number>();
  const lastTokens = new Map<number, number>();
  let iteration = 0;
  harness.onResponse = ({ requestId, final }) => {
    if (!firstTokens.has(Number(requestId))) firstTokens.set(Number(requestId), iteration);
    if (final) lastTokens.set(Number(requestId), iteration);
  };
  const inputs = endId === null ? {} : { end_id: { shape: [1], data: Int32Array.of(endId) } };
  for (let next = 0; lastTokens.size < trace.length; iteration++) {
    for (; trace[next]?.arrivalIteration === iteration; next++) {
      const { id, promptLength, maxNewTokens } = trace[next]!;
      const prompt = Array.from({ length: promptLength }, (_, place) => (31 * id + 7 * place) % 100);
      harness.waiting.push(makeRequest(BigInt(id), prompt, maxNewTokens, inputs));
    }
    harness.loop.iterate();
  }
  if (harness.errors.length > 0) throw harness.errors[0]!;
  const { totalPauses, totalContextTokens } = harness.stats.at(-1)!;
  const generationSteps = harness.stats.reduce((sum, { generationRequests }) => sum + generationRequests, 0);
  const since = (iterations: Map<number, number>) =>
    mean(trace, ({ id, arrivalIteration }) => iterations.get(id)! - arrivalIteration);
  return {
    pauses: totalPauses,
    computedTokens: totalContextTokens + generationSteps,
    recomputedTokens: totalContextTokens - promptTokens(trace),
    iterations: iteration,
    firstToken: since(firstTokens),
    lastToken: since(lastTokens),
  };
}

function promptTokens(trace: readonly TraceRequest[]): number {
  return trace.reduce((sum, { promptLength }) => sum + promptLength, 0);
}

function mean(trace: readonly TraceRequest[], value: (request: TraceRequest) => number): number {
  return trace.reduce((sum, request) => sum + value(request), 0) / trace.length;
}
