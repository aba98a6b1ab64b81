import type { GptManager, GptManagerOptions, InferenceRequest, IterationStats, NamedTensor } from 'skein';
import { Answer } from './answer.js';
import { ALONE, BASE, MAX_BEAM_WIDTH, type Mix } from './mixes.js';
import type { Random } from './random.js';
import type { RequestFactory, SoakRequest } from './requests.js';

/** finish_reasons of a response. */
const FINISH_LENGTH = 3;
const FINISH_TIMED_OUT = 4;
const FINISH_CANCELLED = 5;

/** Most requests that are kept to be run alone. */
const MAX_SAMPLES = 300;
/** Most failures that are worth reading. */
const MAX_FAILURES = 20;

export interface Sample {
  request: SoakRequest;
  answer: Answer;
}

export interface CrowdCounts {
  iterations: number;
  requests: number;
  tokens: number;
  pauses: number;
  reusedTokens: number;
  cancelled: number;
  timedOut: number;
  refused: number;
}

type Engine = Pick<GptManagerOptions, 'enginePath'> & { Manager: typeof GptManager };

function optionsOf(mix: Mix, params: Mix['crowd']): Pick<GptManagerOptions, 'optionalParams'> {
  const { kvCacheConfig: ofNumerics, ...numerics } = mix.numerics ?? {};
  const { kvCacheConfig, ...rest } = params;
  return {
    optionalParams: { ...BASE, ...numerics, ...rest, kvCacheConfig: { ...ofNumerics, ...kvCacheConfig } },
  };
}

/** A manager under random load: it takes whatever it is given, and everything is noted that it should not do. */
export class Crowd {
  readonly failures: string[] = [];
  readonly samples: Sample[] = [];
  readonly counts: CrowdCounts = {
    iterations: 0,
    requests: 0,
    tokens: 0,
    pauses: 0,
    reusedTokens: 0,
    cancelled: 0,
    timedOut: 0,
    refused: 0,
  };
  /** Blocks in use after the last iteration. */
  heldBlocks = 0;
  readonly #random: Random;
  readonly #factory: RequestFactory;
  readonly #manager: GptManager;
  readonly #active = new Map<bigint, Sample & { isCancelled: boolean }>();
  #isOpen = true;

  constructor(engine: Engine, mix: Mix, random: Random, factory: RequestFactory) {
    this.#random = random;
    this.#factory = factory;
    this.#manager = new engine.Manager({
      enginePath: engine.enginePath,
      modelType: mix.modelType,
      schedulerPolicy: mix.schedulerPolicy,
      maxBeamWidth: mix.decodes ? MAX_BEAM_WIDTH : 1,
      ...optionsOf(mix, mix.crowd),
      getInferenceRequests: (max) => this.#arrivals(max),
      sendResponse: (requestId, outputs, final, error) => this.#take(requestId, outputs, final, error),
      pollStopSignals: () => this.#stops(),
      onIterationStats: (stats) => this.#count(stats),
      onError: (error) => this.fail(error.message),
    });
  }

  get ready() {
    return this.#manager.ready;
  }

  get isOver(): boolean {
    return this.#manager.state === 'failed' || this.failures.length > 0;
  }

  /** No more requests; resolves when the last one has ended and the worker is gone. */
  async end(): Promise<void> {
    this.#isOpen = false;
    await this.#manager.shutdown();
    for (const id of this.#active.keys()) this.fail(`request ${id} never ended`);
    if (this.heldBlocks !== 0) this.fail(`${this.heldBlocks} blocks are held though nothing is active`);
    if (this.#manager.failure !== null) this.fail(this.#manager.failure.message);
  }

  fail(what: string): void {
    if (this.failures.length < MAX_FAILURES) this.failures.push(what);
  }

  /** Bursts, and silences in which the engine runs empty. */
  #arrivals(max: number): InferenceRequest[] {
    const count = this.#isOpen && this.#random.chance(0.3) ? this.#random.integer(0, max) : 0;
    return Array.from({ length: count }, () => {
      const request = this.#factory.next();
      this.counts.requests++;
      this.#active.set(request.request.requestId, { request, answer: new Answer(), isCancelled: false });
      return request.request;
    });
  }

  /** Requests to stop: now and then an active one, in any state; sometimes many, and some that do not exist. */
  #stops(): Set<bigint> {
    const stops = new Set<bigint>();
    const chance = this.#random.chance(0.002) ? 0.5 : 0.001;
    for (const [id, active] of this.#active) {
      if (!this.#random.chance(chance)) continue;
      stops.add(id);
      active.isCancelled = true;
    }
    if (this.#random.chance(0.01)) stops.add(2n ** 63n);
    return stops;
  }

  #take(id: bigint, outputs: NamedTensor[], final: boolean, error: string): void {
    const active = this.#active.get(id);
    if (!active) {
      this.fail(`request ${id}, which is not active, got a response`);
      return;
    }
    const { answer } = active;
    answer.add(outputs, final, error);
    if (!final) return;
    this.#active.delete(id);
    this.#judge(active);
  }

  #judge({ request, answer, isCancelled }: Sample & { isCancelled: boolean }): void {
    const id = request.request.requestId;
    if (answer.error !== '' || request.isBad) {
      if (answer.error === '') this.fail(`request ${id} should have been refused`);
      else if (!request.isBad) this.fail(`request ${id} failed: ${answer.error}`);
      else this.counts.refused++;
      return;
    }
    if (request.numSequences > 1) {
      this.samples.push({ request, answer });
      if (this.samples.length > MAX_SAMPLES) this.samples.shift();
      return;
    }
    const generated = answer.sequenceLength - request.promptLength;
    this.counts.tokens += generated;
    if (answer.finishReason === FINISH_CANCELLED) {
      this.counts.cancelled++;
      if (!isCancelled) this.fail(`request ${id} was cancelled by no client`);
    } else if (answer.finishReason === FINISH_TIMED_OUT) {
      this.counts.timedOut++;
      if (!request.timeLimited) this.fail(`request ${id} timed out without a limit`);
    } else if (answer.finishReason === FINISH_LENGTH) {
      if (generated !== request.maxNewTokens) this.fail(`request ${id} ended by length after ${generated}`);
    } else if (!request.mayStop) this.fail(`request ${id} ended by ${answer.finishReason} without a stop`);
    this.#keep({ request, answer });
  }

  /** A fair sample of all that there were; now and then one is remembered, to continue from. */
  #keep(sample: Sample): void {
    const place = this.#random.integer(0, this.counts.requests);
    if (this.samples.length < MAX_SAMPLES) this.samples.push(sample);
    else if (place < MAX_SAMPLES) this.samples[place] = sample;
    if (!sample.request.streaming && this.#random.chance(0.2)) {
      this.#factory.remember(sample.answer.numbers('output_ids').slice(0, sample.answer.sequenceLength));
    }
  }

  #count(stats: IterationStats): void {
    this.counts.iterations++;
    this.counts.pauses = stats.totalPauses;
    this.counts.reusedTokens += stats.reusedTokens;
    this.heldBlocks = stats.heldBlocks;
    if (stats.totalReplayMismatches > 0) this.fail('a token that was generated again was another one');
    if (stats.usedBlocks > stats.maxBlocks || stats.freeBlocks < 0) this.fail('more blocks than there are');
  }
}

/**
 * Runs samples one by one in an engine of their own and compares every bit, for at most `limitMs`.
 * @returns how many were compared; failures are noted with the crowd.
 */
export async function compareAlone(engine: Engine, mix: Mix, crowd: Crowd, limitMs: number): Promise<number> {
  let take: (id: bigint, outputs: NamedTensor[], final: boolean, error: string) => void = () => {};
  const waiting: InferenceRequest[] = [];
  const manager = new engine.Manager({
    enginePath: engine.enginePath,
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    maxBeamWidth: mix.decodes ? MAX_BEAM_WIDTH : 1,
    ...optionsOf(mix, ALONE),
    getInferenceRequests: (max) => waiting.splice(0, max),
    sendResponse: (requestId, outputs, final, error) => take(requestId, outputs, final, error),
    onError: (error) => crowd.fail(error.message),
  });
  await manager.ready;
  const deadlineMs = performance.now() + limitMs;
  let compared = 0;
  for (const { request, answer } of crowd.samples) {
    if (performance.now() > deadlineMs && compared > 0) break;
    const alone = new Answer();
    await new Promise<void>((resolve) => {
      take = (_, outputs, final, error) => {
        alone.add(outputs, final, error);
        if (final) resolve();
      };
      const { time_limit_ms: _, ...inputs } = request.request.inputs;
      waiting.push({ ...request.request, inputs });
      manager.wake();
    });
    compared++;
    const isCutShort = answer.finishReason === FINISH_CANCELLED || answer.finishReason === FINISH_TIMED_OUT;
    const isWhole = !isCutShort || request.streaming;
    const difference = isWhole ? answer.differenceFrom(alone, isCutShort) : null;
    if (difference !== null) crowd.fail(`request ${request.request.requestId} answered ${difference}`);
  }
  await manager.shutdown();
  return compared;
}
