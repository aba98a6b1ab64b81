import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { InferListener, InferParameters, InferRequest } from '../../../callbacks/infer/infer-types.js';
import { ReplyOrder } from '../../../scheduler/tensors/reply-order.js';
import type { InferModel, ModelActivity, VersionStatistics } from '../infer-model.js';
import { nsSince } from '../inference-counters.js';
import { modelSpan } from '../model-span.js';
import { type KeptAnswer, ownCopy, type ResponseCache } from './response-cache.js';

/**
 * The model with a cache before it, where its configuration wants one; null: it wants none, or there is none.
 * @param readsParameters its answers may depend on a request's parameters
 */
export function cachedModel(
  model: InferModel,
  cache: ResponseCache | null,
  readsParameters = false,
): CachedModel | null {
  const { response_cache: wanted } = model.config;
  return cache === null || wanted?.enable !== true ? null : new CachedModel(model, cache, readsParameters);
}

/** Models with a cache, counted. */
let numOwners = 0;

interface Counts {
  hits: number;
  /** Of requests that were answered from the cache, from their arrival to the answer. */
  hitRequestNs: number;
  hitNs: number;
  misses: number;
  missNs: number;
  lastHit: number;
}

/**
 * A model with a response cache: a request that was answered before is answered from it, and never reaches
 * the model's queue.
 *
 *   infer -> key -+- found --> a copy of the answer
 *                 '- else ---> the model -> answer -> client, and a copy into the cache
 *
 * Equal requests at once all run, and the first that is answered is kept, as in Triton; so are the counts: a request that is found counts as a
 * success that took no computing, one whose answer was kept meanwhile as neither found nor missed. A failure is not kept.
 */
export class CachedModel implements InferModel {
  readonly isCached = true;
  readonly #model: InferModel;
  readonly #cache: ResponseCache;
  readonly #owner = ++numOwners;
  readonly #readsParameters: boolean;
  /** Where the model preserves the order of its requests, those that are found wait too. */
  readonly #order: ReplyOrder<object, () => void> | null;
  readonly #counts: Counts = { hits: 0, hitRequestNs: 0, hitNs: 0, misses: 0, missNs: 0, lastHit: 0 };
  #isOpen = true;

  /** @param readsParameters its answers may depend on a request's parameters */
  constructor(model: InferModel, cache: ResponseCache, readsParameters: boolean) {
    this.#model = model;
    this.#cache = cache;
    this.#readsParameters = readsParameters;
    this.#order = model.config.dynamic_batching?.preserve_ordering ? new ReplyOrder() : null;
  }

  get kind() {
    return this.#model.kind;
  }

  get config() {
    return this.#model.config;
  }

  get version() {
    return this.#model.version;
  }

  get labels() {
    return this.#model.labels;
  }

  get modelDirectory() {
    return this.#model.modelDirectory;
  }

  statistics(): VersionStatistics {
    const { last_inference, inference_stats, ...rest } = this.#model.statistics();
    const { hits, hitRequestNs, hitNs, misses, missNs, lastHit } = this.#counts;
    const { success, queue } = inference_stats;
    return {
      ...rest,
      last_inference: Math.max(last_inference, lastHit),
      inference_stats: {
        ...inference_stats,
        success: { count: success.count + hits, ns: success.ns + hitRequestNs + missNs },
        queue: { count: queue.count + hits, ns: queue.ns },
        cache_hit: { count: hits, ns: hitNs },
        cache_miss: { count: misses, ns: missNs },
      },
    };
  }

  activity(): ModelActivity {
    const activity = this.#model.activity();
    return { ...activity, lastInference: Math.max(activity.lastInference, this.#counts.lastHit) };
  }

  failures() {
    return this.#model.failures();
  }

  /** Forgets what is kept of the model, and keeps nothing any more of what it still answers. */
  close(): void {
    this.#isOpen = false;
    this.#cache.drop(this);
  }

  infer(request: InferRequest, on: InferListener): void {
    const isGone = request.signal?.aborted ?? false;
    if (request.sequence !== null || isGone) {
      this.#model.infer(request, on);
      return;
    }
    const startMs = performance.now();
    const key = requestKey(this.#owner, request, this.#readsParameters);
    const found = this.#cache.find(key);
    const lookupNs = nsSince(startMs);
    this.#cache.noteLookup(lookupNs);
    if (found === null) {
      this.#ask(request, on, key, lookupNs);
      return;
    }
    const span = modelSpan(request.trace, this.config, this.version, request.id, startMs);
    span?.set({ 'skein.cache.hit': true });
    span?.end();
    this.#answer(found, on, startMs, lookupNs);
  }

  #answer(found: KeptAnswer, on: InferListener, startMs: number, lookupNs: number): void {
    this.#counts.hits++;
    this.#counts.hitNs += lookupNs;
    this.#counts.lastHit = Date.now();
    const place = this.#begin();
    // A caller never receives its answer while it is still asking.
    queueMicrotask(() => {
      this.#counts.hitRequestNs += nsSince(startMs);
      this.#settle(place, () => {
        on.response(found);
        on.end();
      });
    });
  }

  #ask(request: InferRequest, on: InferListener, key: string, lookupNs: number): void {
    const answers: (() => void)[] = [];
    let kept: KeptAnswer | null = null;
    const place = this.#begin();
    try {
      this.#model.infer(request, {
        response: (response) => {
          // Copied before it is passed on: its reader may release its memory.
          if (this.#isOpen && this.#cache.takes(key, response)) kept = ownCopy(response);
          answers.push(() => on.response(response));
          if (this.#order === null) answers.pop()!();
        },
        end: () => {
          this.#keep(key, kept, lookupNs);
          this.#settle(place, () => {
            for (const answer of answers) answer();
            on.end();
          });
        },
        fail: (error) => this.#settle(place, () => on.fail(error)),
      });
    } catch (error) {
      this.#settle(place, () => {});
      throw error;
    }
  }

  #keep(key: string, answer: KeptAnswer | null, lookupNs: number): void {
    if (!this.#isOpen) return;
    const startMs = performance.now();
    const isNew = answer === null || this.#cache.put(this, key, answer);
    const insertNs = nsSince(startMs);
    this.#cache.noteInsertion(insertNs);
    if (!isNew) return;
    this.#counts.misses++;
    this.#counts.missNs += lookupNs + insertNs;
  }

  #begin(): object {
    const place = {};
    this.#order?.begin(place);
    return place;
  }

  #settle(place: object, tell: () => void): void {
    if (this.#order === null) tell();
    else for (const { answer } of this.#order.settle(place, tell)) answer();
  }
}

/**
 * A text that two requests share only if they have to be answered alike: inputs with names, types, shapes and elements, the outputs that
 * are wanted, and the parameters where the model reads them; not the id, the priority and the time in the queue. Orders do not matter.
 *
 * Triton's key has neither shapes nor outputs nor parameters, so that it answers such requests with one another's outputs.
 * @param owner of the model: no two models that are loaded have the same
 */
export function requestKey(
  owner: number,
  { inputs, outputs, parameters }: Pick<InferRequest, 'inputs' | 'outputs' | 'parameters'>,
  readsParameters: boolean,
): string {
  const sorted = [...inputs].sort((a, b) => (a.name < b.name ? -1 : 1));
  const hash = createHash('sha256');
  const head = [
    owner,
    sorted.map(({ name, datatype, shape, data }) => [name, datatype, shape, data.length]),
    outputs === null ? null : [...new Set(outputs)].sort(),
    readsParameters ? valuesOf(parameters) : null,
  ];
  hash.update(JSON.stringify(head));
  for (const { data } of sorted) hash.update(data);
  return hash.digest('base64');
}

/** Parameters by name, each with its type: 1 and '1' differ, as 1 and true. */
function valuesOf(parameters: InferParameters): unknown[] {
  return Object.entries(parameters)
    .map(([name, value]) => [name, typeof value, String(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
