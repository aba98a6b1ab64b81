import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { type AdmissionLimits, whyItCanNeverRun } from '../../scheduler/admission.js';
import { scheduleCapacity } from '../../scheduler/capacity-scheduler.js';
import { scheduleMicroBatch } from '../../scheduler/micro-batch-scheduler.js';
import { lengthsAfterPause } from '../../scheduler/pause.js';
import type { CapacityPolicy, MicroBatchLimits, SchedulableRequest } from '../../scheduler/types.js';

export interface ReplayOptions {
  policy: CapacityPolicy;
  numBlocks: number;
  tokensPerBlock: number;
  maxSeqLen: number;
  maxInputLen?: number;
  maxNumRequests: number;
  microBatch: MicroBatchLimits;
}

export interface ReplayArrival {
  requestId: bigint;
  promptLength: number;
  maxNewTokens: number;
  /** Tokens after which it ends by itself, as with an end token; absent: it runs to maxNewTokens. */
  endsAfter?: number;
  priority?: number;
}

export interface ReplayChunk {
  requestId: bigint;
  phase: 'context' | 'generation';
  contextTokens: number;
  /** The chunk reaches the end of its prompt. */
  lastChunk: boolean;
}

/** What happened in one iteration. */
export interface ReplayIteration {
  /** The list as the capacity scheduler saw it. */
  active: readonly Readonly<SchedulableRequest>[];
  scheduled: bigint[];
  paused: bigint[];
  chunks: ReplayChunk[];
  finished: bigint[];
  newBlocks: number[];
  /** After this iteration's allocation, before finished requests give theirs back. */
  freeBlocks: number;
}

interface Running {
  readonly arrival: ReplayArrival;
  phase: 'context' | 'generation';
  promptLength: number;
  generatedLength: number;
  maxNewTokens: number;
  contextPosition: number;
}

/**
 * Iterations of the loop without a model: arrivals, capacity, pauses, micro-batch, blocks, completion, with the real
 * schedulers and the real block manager. Everything a scheduler sees is frozen, and each is asked twice, so a plan
 * that depends on anything but its inputs, or changes them, is caught here. Throws when a plan's step finds no block.
 */
export class Replay {
  readonly kv: KvCacheManager;
  readonly limits: AdmissionLimits;
  readonly #options: ReplayOptions;
  readonly #active: Running[] = [];
  readonly #drained: Int32Array;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.kv = new KvCacheManager(options);
    this.#drained = new Int32Array(options.numBlocks);
    this.limits = {
      maxInputLen: options.maxInputLen ?? options.maxSeqLen,
      maxSeqLen: options.maxSeqLen,
      numBlocks: options.numBlocks,
      tokensPerBlock: options.tokensPerBlock,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
      microBatch: options.microBatch,
    };
  }

  get numActive(): number {
    return this.#active.length;
  }

  /** Puts the request into the list behind those of its priority; or says why it was refused. */
  arrive(arrival: ReplayArrival): string | null {
    const reason = whyItCanNeverRun({ ...arrival, beamWidth: 1, draftLength: 0 }, this.limits);
    if (reason !== null) return reason;
    const priority = arrival.priority ?? 0.5;
    const place = this.#active.findIndex((other) => (other.arrival.priority ?? 0.5) < priority);
    const { promptLength, maxNewTokens } = arrival;
    const request: Running = {
      arrival,
      phase: 'context',
      promptLength,
      generatedLength: 0,
      maxNewTokens,
      contextPosition: 0,
    };
    this.#active.splice(place < 0 ? this.#active.length : place, 0, request);
    return null;
  }

  iterate(): ReplayIteration {
    const active = this.#snapshot(this.#active);
    const { policy, maxNumRequests, microBatch } = this.#options;
    const kv = Object.freeze(this.kv.capacity());
    const plan = twice(() => scheduleCapacity(policy, active, kv, maxNumRequests));
    const paused = plan.paused.map((request) => request.requestId);
    for (const requestId of paused) this.#pause(this.#find(requestId));
    const scheduled = plan.scheduled.map((request) => request.requestId);
    const runnable = this.#snapshot(scheduled.map((requestId) => this.#find(requestId)));
    const batch = twice(() => scheduleMicroBatch(runnable, microBatch));
    const chunks = batch.map(({ request, contextTokens }) => ({
      requestId: request.requestId,
      phase: request.phase,
      contextTokens,
      lastChunk: request.contextPosition + contextTokens === request.promptLength,
    }));
    for (const { requestId } of chunks) this.#allocate(this.#find(requestId));
    const newBlocks = Array.from(this.#drained.subarray(0, this.kv.drainNewBlocks(this.#drained)));
    this.kv.checkIntegrity();
    const freeBlocks = this.kv.freeBlocks;
    for (const { requestId, contextTokens } of chunks) advance(this.#find(requestId), contextTokens);
    const finished = chunks.map((chunk) => chunk.requestId).filter((id) => hasEnded(this.#find(id)));
    for (const requestId of finished) this.#finish(requestId);
    this.kv.checkIntegrity();
    return { active, scheduled, paused, chunks, finished, newBlocks, freeBlocks };
  }

  #snapshot(requests: readonly Running[]): readonly Readonly<SchedulableRequest>[] {
    const views = requests.map(({ arrival, ...lengths }) => {
      const { requestId } = arrival;
      const blocksHeld = this.kv.blocksHeld(requestId);
      return Object.freeze({ requestId, ...lengths, blocksHeld, beamWidth: 1, draftLength: 0 });
    });
    return Object.freeze(views);
  }

  #find(requestId: bigint): Running {
    const request = this.#active.find(({ arrival }) => arrival.requestId === requestId);
    if (!request) throw new Error(`A plan names request ${requestId}, which is not active.`);
    return request;
  }

  #pause(request: Running): void {
    this.kv.freeSequence(request.arrival.requestId);
    Object.assign(request, lengthsAfterPause({ ...request, beamWidth: 1, draftLength: 0 }, this.limits));
    request.phase = 'context';
    request.generatedLength = 0;
    request.contextPosition = 0;
  }

  #allocate(request: Running): void {
    const { requestId } = request.arrival;
    if (request.phase === 'context' && request.contextPosition > 0) return;
    const found =
      request.phase === 'context'
        ? this.kv.addSequence(requestId, request.promptLength)
        : this.kv.growSequence(requestId, request.promptLength + request.generatedLength);
    if (!found) throw new Error(`Request ${requestId} was scheduled, but its step finds no block.`);
  }

  #finish(requestId: bigint): void {
    this.kv.freeSequence(requestId);
    this.#active.splice(this.#active.indexOf(this.#find(requestId)), 1);
  }
}

/** One step has run: a chunk of context, whose last one brings token 1, or one more token. */
function advance(request: Running, contextTokens: number): void {
  if (request.phase === 'generation') {
    request.generatedLength += 1;
    return;
  }
  request.contextPosition += contextTokens;
  if (request.contextPosition < request.promptLength) return;
  request.phase = 'generation';
  request.generatedLength = 1;
}

function hasEnded({ arrival, promptLength, generatedLength, maxNewTokens, phase }: Running): boolean {
  if (phase === 'context') return false;
  const total = promptLength + generatedLength - arrival.promptLength;
  return generatedLength >= maxNewTokens || total >= (arrival.endsAfter ?? Number.POSITIVE_INFINITY);
}

function twice<T>(plan: () => T): T {
  const first = plan();
  const second = plan();
  const text = (value: T) =>
    JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? `${item}n` : item));
  if (text(first) !== text(second)) throw new Error('The same inputs gave two different plans.');
  return first;
}
