import { field, says } from '../base/named-text.js';
import { failure, type RequestFailure } from '../callbacks/request-failure.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import { SharedTensors } from '../callbacks/shared-tensors.js';
import type { Tensor } from '../callbacks/types.js';
import type { AdapterWeights, ModuleLayer } from '../models/adapters/adapter-weights.js';
import { adapterTensors } from './token-inputs.js';

/** Tasks that are noted as sent; of more, the one that was noted first is forgotten, which costs that its weights are sent again. */
const MAX_NOTED = 4096;

/** The adapter of a request that has brought its weights to the host. */
export interface BroughtAdapter {
  taskId: bigint;
  weights: AdapterWeights;
  /** The request was sent with the weights. */
  wasCarried: boolean;
}

/**
 * Weights of adapters go to the engine only where it may not hold them: every request may bring its adapter to the host, and most of
 * them name it alone on the way to the engine.
 *
 *   request + adapter -> was it sent?  no:  lora_task_id, lora_weights, lora_config  -> engine
 *                          ^           yes: lora_task_id                             -> engine
 *                          '-- forgotten, and the request is sent once more <--- failure of the kind 'adapter'
 */
export class SentAdapters {
  /** By task, in the order in which they were noted. */
  readonly #sent = new Map<bigint, WeakRef<AdapterWeights>>();
  readonly #sharesMemory: boolean;

  /** @param sharesMemory the engine is a thread of this process */
  constructor(sharesMemory: boolean) {
    this.#sharesMemory = sharesMemory;
  }

  /**
   * Tensors that the request takes along besides the id, in float32: none where the engine was sent these
   * weights under that id.
   */
  tensorsFor(adapter: BroughtAdapter): Record<string, Tensor> {
    const { taskId, weights } = adapter;
    if (this.#sent.get(taskId)?.deref() === weights) return {};
    const tensors = adapterTensors(weights, new SharedTensors());
    if (!this.#sharesMemory) tensors.lora_weights = copied(tensors.lora_weights);
    adapter.wasCarried = true;
    this.#note(taskId, weights);
    return tensors;
  }

  /** The request has failed, since others in flight use all of the engine's room for adapters: it can be sent again. */
  isShort(adapter: BroughtAdapter, { kind, field }: RequestFailure): boolean {
    if (kind !== 'overloaded' || field !== 'lora_weights') return false;
    this.#sent.delete(adapter.taskId);
    adapter.wasCarried = false;
    return true;
  }

  /** The request has failed. True: since the engine does not hold the adapter any more, and it can be sent again, with the weights. */
  isToSendAgain({ taskId, wasCarried }: BroughtAdapter, { kind }: RequestFailure): boolean {
    // A request that failed with the weights may have failed before they were read.
    if (wasCarried || kind === 'adapter') this.#sent.delete(taskId);
    return !wasCarried && kind === 'adapter';
  }

  /** The engine will not hold the task's adapter any more. */
  forget(taskId: bigint): void {
    this.#sent.delete(taskId);
  }

  /** Another engine takes the place of the one that knew the adapters. */
  forgetAll(): void {
    this.#sent.clear();
  }

  #note(taskId: bigint, weights: AdapterWeights): void {
    this.#sent.delete(taskId);
    this.#sent.set(taskId, new WeakRef(weights));
    if (this.#sent.size > MAX_NOTED) this.#sent.delete(this.#sent.keys().next().value!);
  }
}

/** The tensor without shared memory, which no other process can have. */
function copied({ shape, data }: Tensor): Tensor {
  return { shape, data: data.buffer instanceof SharedArrayBuffer ? data.slice() : data };
}

/** The request names a task without its weights, and the engine does not hold them: the failure in the words of those who submit requests. */
export function missingAdapter(taskId: bigint): RequestFailure {
  return failure(
    'adapter',
    says`${field('loraTaskId')} is ${taskId}, and the engine does not hold that adapter, or no longer; submit the request again with its weights as ${field('adapter')}.`,
    'loraTaskId',
  );
}

/** @throws ParameterError unless it has the form of an adapter */
export function checkAdapter(adapter: Partial<AdapterWeights> | null): void {
  const layers: unknown = adapter?.moduleLayers;
  const isLayer = (layer: Partial<ModuleLayer> | null) =>
    layer?.a instanceof Float32Array &&
    layer.b instanceof Float32Array &&
    [layer.layer, layer.module, layer.rank].every(isSmall);
  if (Array.isArray(layers) && layers.every(isLayer)) return;
  throw new ParameterError('adapter', says`${field('adapter')} is no adapter; openAdapter reads one.`);
}

/** A number as the engine's tensors have it. */
function isSmall(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31;
}
