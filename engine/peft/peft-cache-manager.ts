import { noteFreed } from '../../base/buffer-pool.js';
import { input, option, says } from '../../base/named-text.js';
import { AdapterMissingError } from '../../callbacks/adapter-missing-error.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { AdapterWeights } from '../../models/adapters/adapter-weights.js';
import type { AdapterCapacity } from '../../scheduler/tokens/types.js';
import { AdapterCache } from './adapter-cache.js';
import { fingerprintOf } from './adapter-fingerprint.js';
import { DeviceSlots, type SlotChange } from './device-slots.js';
import { type CachePages, type PageSizes, pagesOfAdapter, whyAdapterIsTooLarge } from './page-sizes.js';

/** An adapter's part in a request, fixed from the request's admission to its end. */
export interface AdapterUse {
  readonly taskId: bigint;
  /** Pages that the adapter takes on the device, regardless of its other users. */
  readonly pages: number;
  /** Digest of its weights. */
  readonly fingerprint: string;
}

interface HeldAdapter {
  weights: AdapterWeights;
  fingerprint: string;
}

/**
 * The LoRA adapters of all requests. The first request of a task brings the weights, later ones name the task alone.
 *
 *                 admit, with weights                         ensure                       drainChanges
 *   request  --------------------------->  host cache  ------------------->  device slots -------------> executor
 *            admit, without: must be here      |                                  |
 *                                              | it is unused, room is needed     | no step uses it, room is needed
 *                                              v                                  v
 *                                         gone, also from its slot           stays in the host cache
 *
 *   host cache     weights as they came; in use from a request's admission to its end, also while it waits or is paused
 *   device slots   what steps read; in use while a step runs
 *
 * So whatever waits can be brought back to a slot, and a slot is never replaced under a step. A state machine without a clock:
 * the loop makes the changes that it asks for.
 */
export class PeftCacheManager {
  readonly #sizes: PageSizes;
  readonly #pages: CachePages;
  readonly #host: AdapterCache<HeldAdapter>;
  readonly #device: DeviceSlots;
  /** Tasks that are forgotten when the last request of them ends. */
  readonly #leaving = new Set<bigint>();

  /** @param maxSlots slots of the executor */
  constructor(sizes: PageSizes, pages: CachePages, maxSlots: number) {
    this.#sizes = sizes;
    this.#pages = pages;
    this.#host = new AdapterCache(pages.host);
    this.#device = new DeviceSlots(maxSlots, pages.device);
  }

  /** Greatest rank of a module-layer. */
  get maxAdapterSize(): number {
    return this.#sizes.maxAdapterSize;
  }

  /** Most bytes that an adapter may have. */
  get maxAdapterBytes(): number {
    return Math.min(this.#pages.host, this.#pages.device) * this.#sizes.bytesPerPage;
  }

  /** What all requests that run at once may use together. */
  get room(): AdapterCapacity {
    const isLoaded = (taskId: bigint) => this.#device.slotOf(taskId) >= 0;
    return { maxPages: this.#pages.device, maxAdapters: this.#device.maxSlots, isLoaded };
  }

  /** Number of pages of a task's adapter; null: it is not held, and its weights have to be sent. */
  pagesOf(taskId: bigint): number | null {
    return this.#host.pagesOf(taskId);
  }

  /**
   * Begins a request's use of an adapter; `release` ends it. `brought`: weights that came with it; null: none. Weights of a task
   * that is held already, and that are the same, change nothing; others take their place unless requests still use those.
   * @param fingerprint of the weights, where it is known; else it is made here
   * @throws AdapterMissingError, ParameterError; then nothing has changed
   */
  admit(taskId: bigint, brought: AdapterWeights | null, fingerprint?: string): AdapterUse {
    if (brought === null) {
      if (!this.#host.has(taskId)) throw new AdapterMissingError(taskId);
      this.#host.hold(taskId);
    } else this.#put(taskId, brought, fingerprint);
    this.#leaving.delete(taskId);
    return { taskId, pages: this.#host.pagesOf(taskId)!, fingerprint: this.#host.get(taskId)!.fingerprint };
  }

  /** Ends a request's use of an adapter. */
  release({ taskId }: AdapterUse): void {
    this.#host.release(taskId);
    if (this.#leaving.has(taskId)) this.forget(taskId);
  }

  /** The task's adapter goes: at once, or with the last request that uses it, unless another one names it before. */
  forget(taskId: bigint): void {
    if (!this.#host.has(taskId)) return;
    if (this.#host.uses(taskId) > 0) {
      this.#leaving.add(taskId);
      return;
    }
    this.#leaving.delete(taskId);
    this.#forget(taskId);
  }

  /**
   * Brings the adapters of a step to the device and holds them there until `endStep`. Returns those for which there is no room
   * with the steps that run; they are not held.
   */
  ensure(taskIds: readonly bigint[]): bigint[] {
    return this.#device.hold(taskIds, (taskId) => {
      const { weights } = this.#host.get(taskId)!;
      return { weights, pages: this.#host.pagesOf(taskId)! };
    });
  }

  /** Slot of a task for which `ensure` found room. */
  slotOf(taskId: bigint): number {
    return this.#device.slotOf(taskId);
  }

  /** Ends a step's use of its adapters. */
  endStep(taskIds: readonly bigint[]): void {
    this.#device.release(taskIds);
  }

  /** Changes to make in the executor's slots, in this order, before the next step and while none runs. */
  drainChanges(): SlotChange[] {
    return this.#device.drain();
  }

  /** Notes that the executor refused a change. */
  noteFailed(slot: number): void {
    this.#device.noteFailed(slot);
  }

  stats(): { hostPages: number; usedHostPages: number; devicePages: number; usedDevicePages: number } {
    return {
      hostPages: this.#pages.host,
      usedHostPages: this.#host.usedPages,
      devicePages: this.#pages.device,
      usedDevicePages: this.#device.usedPages,
    };
  }

  /** Throws unless both caches agree. Takes time for each adapter that is held. */
  checkIntegrity(): void {
    for (const taskId of this.#device.taskIds()) {
      if (!this.#host.has(taskId))
        throw new Error(`Adapter ${taskId} is on the device, but not in the host cache.`);
      if (this.#device.isHeld(taskId) && this.#host.uses(taskId) === 0) {
        throw new Error(`A step holds adapter ${taskId}, which no request uses.`);
      }
    }
  }

  #put(taskId: bigint, weights: AdapterWeights, digest?: string): void {
    const pages = pagesOfAdapter(weights, this.#sizes);
    const tooLarge = whyAdapterIsTooLarge(pages, this.#pages);
    if (tooLarge !== null) throw tooLarge;
    const known = this.#host.get(taskId);
    // The digest takes time, and a request that finds no room may come again and again.
    if (known === undefined && !this.#host.hasRoom(pages)) throw this.#full(pages);
    const fingerprint = digest ?? fingerprintOf(weights);
    if (known?.fingerprint === fingerprint) {
      this.#host.hold(taskId);
      return;
    }
    if (known !== undefined) this.#checkReplaceable(taskId, pages);
    if (known !== undefined) this.#forget(taskId);
    const evicted = this.#host.put(taskId, pages, { weights, fingerprint })!;
    for (const { id, value } of evicted) this.#drop(id, value);
  }

  /** Its own pages count as room, since they are unused. */
  #checkReplaceable(taskId: bigint, pages: number): void {
    const uses = this.#host.uses(taskId);
    if (uses > 0) {
      throw new ParameterError(
        'lora_task_id',
        says`${input('lora_task_id')} is ${taskId}, and ${uses} requests in flight use that adapter with other weights; wait for their end, or give these weights another id.`,
      );
    }
    if (!this.#host.hasRoom(pages)) throw this.#full(pages);
  }

  #forget(taskId: bigint): void {
    this.#drop(taskId, this.#host.remove(taskId));
  }

  /** What left the host cache leaves its slot too. */
  #drop(taskId: bigint, { weights }: HeldAdapter): void {
    this.#device.remove(taskId);
    const { buffer } = weights.moduleLayers[0]!.a;
    if (buffer instanceof SharedArrayBuffer) noteFreed(buffer.byteLength);
  }

  /** The host cache has no room, because requests in flight use what it holds. */
  #full(pages: number): ParameterError {
    const { heldPages, numPages } = this.#host;
    return new ParameterError(
      'lora_weights',
      says`${input('lora_weights')} takes ${pages} pages of the host cache of adapters; requests in flight use ${heldPages} of its ${numPages} (${option('peftCacheManagerConfig.hostCacheSize')}); try again later.`,
      'overloaded',
    );
  }
}
