import { SkeinError } from '../../base/skein-error.js';
import { REQUEST_FIELDS } from '../../callbacks/request/fields.js';
import { type SimulatedIteration, type SimulatedStep, Simulation } from './simulation.js';
import { checkSimulationInput, MAX_ITERATIONS, type SimulationInput } from './simulation-input.js';

/**
 * Most entries in all lists together; beyond that a simulation is given up, since its output would not fit into memory.
 */
const MAX_ENTRIES = 4_000_000;

/** An id in the input's form. */
export type SimulationId = number | string;

export interface SimulationIteration {
  iteration: number;
  active: SimulationId[];
  scheduled: ({ id: SimulationId } & Omit<SimulatedStep, 'requestId'>)[];
  paused: SimulationId[];
  /** `reused`: number of blocks taken from the cache since iteration 0. */
  blocks: { free: number; used: number; reused: number };
}

export interface SimulationRequestResult {
  id: SimulationId;
  /** First iteration in which the request ran. */
  firstIteration: number;
  /** Iteration that brought its last token. */
  lastIteration: number;
  pauses: number;
  reusedBlocks: number;
}

export interface SimulationResult {
  iterations: SimulationIteration[];
  /** Results of the requests, in the order of the input. */
  requests: SimulationRequestResult[];
}

/** The input is well-formed, but a request of it can never run, or it takes too long. */
export class SimulationError extends SkeinError {
  override name = 'SimulationError';
  override readonly code = 'SKEIN_SIMULATION';
}

/**
 * Runs the real schedulers and the real block manager over a list of requests, without a model, and shows which requests
 * run when, which are paused, and how many blocks are held. For planning capacity, and for understanding a policy.
 *
 * Conventions
 *
 *  1. Iterations count from 0. At the start of each, its arrivals join the list (descending priority, then arrival,
 *     then the order of the file); then it is scheduled. An iteration with nothing active is listed too, empty, so that
 *     `iterations[i].iteration` is i.
 *  2. The iteration that runs a context's last chunk generates token 1. Every generation iteration adds one KV slot
 *     (that of the token before) and one token. There is no end token: a request ends with token maxNewTokens.
 *  3. `active` is the list as the capacity scheduler saw it. `scheduled` is what ran, in the order of the packed batch:
 *     contexts first. A request that got no token of the iteration's budget is not in it. `contextBefore` and
 *     `contextAfter` count prompt tokens in the cache; `generated` is what the request has generated after the
 *     iteration, pauses included.
 *  4. A pause frees all blocks. The prompt becomes prompt + generated, maxNewTokens falls by as much, the context
 *     restarts at 0. Nothing limits the length of that prompt, with one exception: without `chunk` and with
 *     `maxNumTokens`, one longer than an iteration takes could never run, so it is cut to what fits, and the tokens
 *     after it are generated again.
 *  5. A chunk's length is a multiple of `chunk.unit` unless it is the context's last.
 *  6. `blocks` is taken after the iteration's allocation, before finished requests give theirs back.
 *  7. All tokens of a draft are rejected. A generation step with a draft takes the blocks of past + 1 + draft and gives
 *     those of the draft back after the iteration. A draft never reaches beyond the last token.
 *  8. Beams share the blocks that are full of prompt; all others count beamWidth times. A generation step costs beamWidth
 *     + draft tokens of `maxNumTokens`, a request counts once in `maxBatchSize`. A pause drops what beams have generated,
 *     and with reuse only the blocks of their prompts are kept.
 *  9. `maxBatchSize` is maxNumRequests and `maxNumTokens` unlimited where absent; `priority` is 0.5, `draftLength` 0,
 *     `beamWidth` 1. Without `maxWaitIterations` and `startHorizon` no request ages, and whatever fits starts.
 * 10. `promptLength` stands for a prompt that shares no token with any other; `tokens` gives actual tokens. Generated
 *     tokens are unique to their request. Without reuse there is no difference between the two.
 * 11. With `enableBlockReuse` a context begins after what the cache has of it: `contextBefore` of its first
 * chunk. The
 *     last prompt token is always computed; the beginning of a block can be reused too, by taking an unused block over
 *     or by a copy. A resumed request finds the full blocks that it left, also in the midst of its context, as far as
 *     they were not evicted. `blocks.reused` and `reusedBlocks` count full blocks shared, resumes included. Reuse lowers
 *     neither the blocks to completion nor what the first chunk is admitted with: the reused blocks are then simply not
 *     allocated. `free` counts cached blocks without holders. A request whose first missing block is about to be
 *     written by another waits for it: it is active but not scheduled.
 * 12. STATIC_BATCH is the capacity policy of V1: no request starts while any generates. V1's padding, and its slots that
 *     run on empty until the whole batch has ended, are not simulated.
 * 13. With `maxAttentionWindow` W a request never holds more than ceil(W / tokensPerBlock) blocks: once it has them all,
 *     its tokens are written over its oldest ones, and a step of it takes no block. So a request may be longer than the
 *     pool. `sinkTokenLength` (0) tokens stay, in blocks of their own; a bubble after them counts like tokens: see
 *     kvcache/attention-window.ts. A request that ends longer than its blocks hold shares none, with anybody or itself.
 * 14. Refused by name, since adapters are not simulated: loraTaskId. A request that could never run is an error with
 *     the numbers.
 *
 * Worked example: MAX_UTILIZATION, 4 blocks of 4 tokens; A arrives in iteration 0 with a prompt of 4 and 6 new tokens, B
 * in iteration 1 with a prompt of 5 and 5 new tokens. `past` is the number of tokens in the cache before a step.
 *
 *   iteration   A                                B                                   used   free
 *       0       context 0-4: 1 block, token 1                                          1      3
 *       1       past 4: opens block 2, token 2   context 0-5: 2 blocks, token 1        4      0
 *      2-4      past 5-7: tokens 3, 4, 5         past 5-7: tokens 2, 3, 4              4      0
 *       5       past 8: needs block 3; none is   paused: its 2 blocks go back, its     3      1
 *               free, so B, the last that has    prompt is now 5 + 4 = 9, with 1
 *               started, is paused; token 6, end token to go
 *       6                                        context 0-9: 3 blocks, token 5, end   3      1
 *
 * @throws SimulationInputError naming field, value and limit; SimulationError for what cannot run to its end.
 */
export function simulate(input: SimulationInput): SimulationResult {
  const checked = checkSimulationInput(input);
  const { requests } = checked;
  const simulation = newSimulation(checked);
  const arrivals = requests
    .map(({ arrivalIteration }, index) => ({ arrivalIteration, index }))
    .sort((left, right) => left.arrivalIteration - right.arrivalIteration || left.index - right.index);
  const log = new Log(requests.map(({ id }) => id));
  let next = 0;
  for (let iteration = 0; next < arrivals.length || simulation.active.length > 0; iteration += 1) {
    if (iteration === MAX_ITERATIONS || log.entries > MAX_ENTRIES) {
      throw new SimulationError(
        `After ${iteration} iterations ${simulation.active.length} requests are active and ` +
          `${arrivals.length - next} to come; a simulation has at most ${MAX_ITERATIONS} iterations ` +
          `and ${MAX_ENTRIES} entries in its lists.`,
      );
    }
    for (; arrivals[next]?.arrivalIteration === iteration; next += 1)
      arrive(simulation, checked, arrivals[next]!.index);
    log.add(iteration, simulation.iterate());
  }
  return log.result;
}

function newSimulation(input: SimulationInput): Simulation {
  const { policy, numBlocks, tokensPerBlock, maxNumRequests, chunk } = input;
  const maxBatchSize = input.maxBatchSize ?? maxNumRequests;
  const maxNumTokens = input.maxNumTokens ?? Number.POSITIVE_INFINITY;
  const microBatch = { maxBatchSize, maxNumTokens, ...(chunk ? { chunking: withoutUndefined(chunk) } : {}) };
  const { enableBlockReuse = false, maxAttentionWindow, sinkTokenLength } = input;
  const { maxWaitIterations, startHorizon } = input;
  return new Simulation({
    ...{ policy, numBlocks, tokensPerBlock, maxNumRequests, microBatch, enableBlockReuse },
    ...{ maxWaitIterations, startHorizon },
    ...(maxAttentionWindow === undefined ? {} : { maxAttentionWindow }),
    ...(sinkTokenLength === undefined ? {} : { sinkTokenLength }),
  });
}

function withoutUndefined(chunk: NonNullable<SimulationInput['chunk']>) {
  const { unit, policy, maxContextLength } = chunk;
  return { unit, policy, ...(maxContextLength === undefined ? {} : { maxContextLength }) };
}

function arrive(simulation: Simulation, { requests }: SimulationInput, index: number): void {
  const {
    id,
    promptLength,
    tokens,
    maxNewTokens,
    beamWidth = 1,
    priority = REQUEST_FIELDS.priority.default,
    draftLength = 0,
  } = requests[index]!;
  const reason = simulation.arrive({
    requestId: BigInt(index),
    promptLength: promptLength ?? tokens!.length,
    maxNewTokens,
    beamWidth,
    priority,
    draftLength,
    ...(tokens ? { tokens: Int32Array.from(tokens) } : {}),
  });
  if (reason !== null) {
    throw new SimulationError(`requests[${index}] (id ${JSON.stringify(id)}) can never run: ${reason}`);
  }
}

/** Writes down the iterations, with the ids of the input. */
class Log {
  readonly result: SimulationResult;
  entries = 0;
  readonly #ids: readonly SimulationId[];

  constructor(ids: readonly SimulationId[]) {
    this.#ids = ids;
    const none = { firstIteration: -1, lastIteration: -1, pauses: 0, reusedBlocks: 0 };
    this.result = { iterations: [], requests: ids.map((id) => ({ id, ...none })) };
  }

  add(iteration: number, { active, steps, paused, finished, blocks }: SimulatedIteration): void {
    const { iterations, requests } = this.result;
    this.entries += active.length + steps.length + paused.length;
    iterations.push({
      iteration,
      active: active.map((requestId) => this.#id(requestId)),
      scheduled: steps.map(({ requestId, ...step }) => ({ id: this.#id(requestId), ...step })),
      paused: paused.map((requestId) => this.#id(requestId)),
      blocks,
    });
    for (const { requestId } of steps) {
      const request = requests[Number(requestId)]!;
      if (request.firstIteration < 0) request.firstIteration = iteration;
    }
    for (const requestId of paused) requests[Number(requestId)]!.pauses += 1;
    for (const { requestId, reusedBlocks } of finished) {
      Object.assign(requests[Number(requestId)]!, { lastIteration: iteration, reusedBlocks });
    }
  }

  #id(requestId: bigint): SimulationId {
    return this.#ids[Number(requestId)]!;
  }
}
