import type { InParts } from '../../base/run-to-end.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { fingerprintInParts } from '../peft/adapter-fingerprint.js';
import { type AdapterBase, type AdapterInputs, adapterInputsInParts } from './adapter-inputs.js';

/**
 * Values of adapters that are read in one iteration while others generate: a few milliseconds. An adapter of 40 MB comes
 * in over some twenty iterations; at once it would hold everybody for a tenth of a second.
 */
const ARRIVAL_VALUES = 2 ** 20;

/** An adapter that was read, with the digest of its weights; `weights` is not null. */
export type ArrivedAdapter = AdapterInputs & { fingerprint: string };

type Arrival = { adapter: ArrivedAdapter } | { error: unknown };

/**
 * Adapters on their way in: requests whose adapters are new wait until these are read, in parts, one adapter after the
 * other. Requests that name such an adapter without its weights wait for it, all others pass.
 *
 *   iteration   requests                         taken        read
 *   1           a: weights   b   c: weights      b            a, first part
 *   2           a: weights   c: weights   a, d   d            a, last part
 *   3           a, read   c: weights   a         a, a         c, first part
 */
export class AdapterArrivals {
  /** Whether others generate: else no request is held up. */
  isBusy = false;
  readonly #base: AdapterBase;
  readonly #valuesAtOnce: number;
  /** Adapters that were read, by the requests that bring them. */
  readonly #read = new WeakMap<InferenceRequest, Arrival>();
  #current: { request: InferenceRequest; parts: InParts<ArrivedAdapter> } | null = null;

  /** @param valuesAtOnce read in one iteration while others generate */
  constructor(base: AdapterBase, valuesAtOnce = ARRIVAL_VALUES) {
    this.#base = base;
    this.#valuesAtOnce = valuesAtOnce;
  }

  /** Those of the requests that can be taken now, in their order; reads a part of an adapter that another one waits for. */
  ready<Request extends InferenceRequest>(requests: readonly Request[]): Request[] {
    if (!requests.some(bringsWeights)) return [...requests];
    let left = this.isBusy ? this.#valuesAtOnce : Number.POSITIVE_INFINITY;
    const coming = new Set<bigint>();
    return requests.filter((request) => {
      const task = taskOf(request);
      if (task !== null && coming.has(task)) return false;
      if (!bringsWeights(request)) return true;
      left = this.#advance(request, left);
      if (this.#read.has(request)) return true;
      if (task !== null) coming.add(task);
      return false;
    });
  }

  /** The adapter of a request that was taken; null: it was not read in parts. @throws what is wrong with its tensors */
  claim(request: InferenceRequest): ArrivedAdapter | null {
    const arrival = this.#read.get(request);
    if (arrival === undefined) return null;
    if ('error' in arrival) throw arrival.error;
    return arrival.adapter;
  }

  /** Reads on. @param values that may be read @returns those that are left for others */
  #advance(request: InferenceRequest, values: number): number {
    if (values <= 0 || this.#read.has(request)) return values;
    this.#current ??= { request, parts: arriving(request.inputs, this.#base) };
    const { parts } = this.#current;
    if (this.#current.request !== request) return values;
    try {
      for (let left = values; left > 0; ) {
        const { done, value } = parts.next();
        if (done) return this.#finish(request, { adapter: value });
        left -= value;
      }
    } catch (error) {
      return this.#finish(request, { error });
    }
    return 0;
  }

  /**
   * The next adapter begins with the next iteration, also where no request generates: a request without one
   * may come.
   */
  #finish(request: InferenceRequest, arrival: Arrival): 0 {
    this.#read.set(request, arrival);
    this.#current = null;
    return 0;
  }
}

function* arriving(inputs: InferenceRequest['inputs'], base: AdapterBase): InParts<ArrivedAdapter> {
  const read = yield* adapterInputsInParts(inputs, base);
  const { taskId, weights } = read!;
  return { taskId, weights, fingerprint: yield* fingerprintInParts(weights!) };
}

/** True for tensors of an adapter with the types that they must have; what has others is refused where it is admitted. */
function bringsWeights({ inputs }: InferenceRequest): boolean {
  const { lora_weights: weights, lora_config: config } = inputs ?? {};
  const isWhole = weights?.data instanceof Float32Array && config?.data instanceof Int32Array;
  const hasShapes = Array.isArray(weights?.shape) && Array.isArray(config?.shape);
  return (
    isWhole && hasShapes && weights.data.length > 0 && config.data.length > 0 && taskOf({ inputs }) !== null
  );
}

function taskOf({ inputs }: Pick<InferenceRequest, 'inputs'>): bigint | null {
  const task: unknown = inputs?.lora_task_id?.data?.[0];
  return typeof task === 'bigint' ? task : null;
}
