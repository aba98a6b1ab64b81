import { MAX_TIMER_MS } from '../../../base/int32.js';
import type { ModelDirectory } from '../model-directory.js';
import { ModelLoadError, reasonFor } from '../model-load-error.js';
import type { ServedModel } from '../served-model.js';
import type { StoredModel } from './model-store.js';
import { evictionsFor, expiryMs, memoryShare, type Resident } from './residency.js';
import { gaveUp, pause } from './waits.js';

/** A model that is ready to be loaded. */
export interface MeasuredModel {
  /** Bytes that it takes whatever its cache is. */
  fixedBytes: number;
  /** Most bytes that its KV cache can use. */
  mostCacheBytes: number;
  /** Loads it: requests find it under its name from then on. */
  load(cacheBytes: number, signal: AbortSignal): Promise<void>;
}

/** Starts and ends engines. */
export interface ModelLoader {
  /** Builds what is not built yet, and measures. @throws an Error whose message is a sentence about what is wrong */
  measure(model: StoredModel, signal: AbortSignal): Promise<MeasuredModel>;
  /** No request finds the model from now on; resolves when it is freed. */
  unload(name: string): Promise<void>;
}

export interface OnDemandLimits {
  /** Bytes of memory that these models take together. */
  memoryBytes: number;
  /**
   * Milliseconds that a model stays after its last use where a request says nothing else; Infinity: for ever.
   */
  keepAliveMs: number;
  /** Requests that may wait for models. */
  maxWaiting: number;
  /** Milliseconds that a request waits for a model. */
  loadTimeoutMs: number;
}

export interface OnDemandParts {
  store: { find(name: string): Promise<StoredModel | null> };
  /** All models that are served; those that came from elsewhere stay. */
  models: ModelDirectory;
  loader: ModelLoader;
  limits: OnDemandLimits;
  /** Called for a model that could not be unloaded. */
  onError: (error: Error) => void;
}

/** A model that stays at least until it is released. */
export interface Lease {
  model: ServedModel;
  /** Its engine keeps it from then on, as long as it has anything to do. */
  release(): void;
}

interface Borrowing {
  /** Milliseconds that the model stays after this use. */
  keepAliveMs?: number | undefined;
  /** Aborted when the model is no longer wanted. */
  signal: AbortSignal;
}

/** A model between its load and its end. */
interface Loaded {
  name: string;
  bytes: number;
  keepAliveMs: number;
  lastUsedMs: number;
  leases: number;
  model: ServedModel;
  /** Stops following its engine. */
  leave: () => void;
}

interface Loading {
  /** One for each request that waits. */
  waiters: Set<object>;
  /** Those that waited when it was loaded: each has a lease. */
  granted: Set<object>;
  abort: AbortController;
  /** Resolves when it is loaded, with a lease for each that waits then. */
  done: Promise<Loaded>;
}

/** Milliseconds between two looks at an engine that is to be idle. */
const LOOK_MS = 100;

/**
 * Models of a folder that are loaded on request, and unloaded after a while without requests.
 *
 *   borrow --> loaded? --> lease                                    release, last token --> keep alive --> unload
 *                '--> one load, for all who wait for this model          ^                       |
 *                        in turn: measure, make room, load --------------'     make room --------'
 *
 * Loads go one after the other, so that each knows what memory is left. A load that is no longer awaited is
 * given up.
 */
export class OnDemandModels {
  readonly #parts: OnDemandParts;
  readonly #loaded = new Map<string, Loaded>();
  readonly #own = new WeakSet<ServedModel>();
  readonly #loading = new Map<string, Loading>();
  readonly #unloading = new Map<string, Promise<void>>();
  /** The load that is the last in turn. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #leave: () => void;

  constructor(parts: OnDemandParts) {
    this.#parts = parts;
    this.#leave = parts.models.onChange(({ kind, model }) => {
      const loaded = this.#loaded.get(model.id);
      if (loaded?.model !== model) return;
      // It was unloaded elsewhere, as clients of the model repository may do.
      if (kind === 'removed') this.#forget(loaded);
      // An engine that is gone for good makes room for a new one.
      else if (kind === 'state' && model.state.status === 'failed') this.#unload(loaded);
    });
  }

  /**
   * The model of a name, loaded if it is not yet. Null: no model has this name.
   * @throws ModelLoadError; the signal's reason
   */
  async borrow(name: string, { keepAliveMs, signal }: Borrowing): Promise<Lease | null> {
    signal.throwIfAborted();
    const served = this.#parts.models.find(name);
    if (served !== undefined && !this.#unloading.has(served.id)) return this.#lease(served, keepAliveMs);
    const stored = await this.#parts.store.find(name);
    if (stored === null) return null;
    const now = this.#parts.models.find(stored.name);
    if (now !== undefined && !this.#unloading.has(now.id)) return this.#lease(now, keepAliveMs);
    const loaded = await this.#wait(stored, signal);
    this.#note(loaded, keepAliveMs);
    return this.#leaseOf(loaded);
  }

  /** True for a model that was loaded here, also once it is unloaded. */
  owns(model: ServedModel): boolean {
    return this.#own.has(model);
  }

  /** When the model is unloaded without further requests, in milliseconds since 1970; null: never. */
  expiresAt(name: string): number | null {
    const loaded = this.#loaded.get(name);
    if (loaded === undefined || loaded.keepAliveMs === Number.POSITIVE_INFINITY) return null;
    const leftMs = isBusy(loaded) ? loaded.keepAliveMs : expiryMs(loaded) - performance.now();
    return Date.now() + Math.max(0, leftMs);
  }

  /** Lets a model go as soon as it has nothing to do. */
  expire(name: string): void {
    const loaded = this.#loaded.get(name);
    if (loaded === undefined) return;
    loaded.keepAliveMs = 0;
    this.#tidy();
  }

  /** Unloads a model, whose answers under way continue; resolves when it is freed. */
  async unload(name: string): Promise<void> {
    this.#loading
      .get(name)
      ?.abort.abort(new ModelLoadError('failed', `The model '${name}' is being deleted.`));
    const loaded = this.#loaded.get(name);
    if (loaded !== undefined) this.#unload(loaded);
    await this.#unloading.get(name);
  }

  /** Loads and unloads nothing any more; the models that are loaded are their owner's. */
  close(): void {
    this.#leave();
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const { abort } of this.#loading.values()) abort.abort(new Error('The server is shutting down.'));
    for (const loaded of this.#loaded.values()) loaded.leave();
    this.#loaded.clear();
  }

  /** A lease of a model that is served, whosever it is. */
  #lease(served: ServedModel, keepAliveMs: number | undefined): Lease {
    const base = served.kind === 'generator' ? (served.base ?? served.id) : served.id;
    const loaded = this.#loaded.get(base);
    if (loaded === undefined) return { model: served, release: () => {} };
    loaded.leases++;
    this.#note(loaded, keepAliveMs);
    return this.#leaseOf(loaded, served);
  }

  #note(loaded: Loaded, keepAliveMs = this.#parts.limits.keepAliveMs): void {
    loaded.keepAliveMs = keepAliveMs;
    loaded.lastUsedMs = performance.now();
  }

  #leaseOf(loaded: Loaded, model = loaded.model): Lease {
    let isHeld = true;
    return {
      model,
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        loaded.leases--;
        loaded.lastUsedMs = performance.now();
        this.#tidy();
      },
    };
  }

  /** Waits for the load of a model, and begins it if necessary. @returns the model, with a lease on it */
  async #wait(stored: StoredModel, signal: AbortSignal): Promise<Loaded> {
    const { maxWaiting, loadTimeoutMs } = this.#parts.limits;
    if (this.#waiting >= maxWaiting) {
      throw new ModelLoadError(
        'tooMany',
        `${this.#waiting} requests wait for models; at most ${maxWaiting} may.`,
      );
    }
    const loading = this.#loading.get(stored.name) ?? this.#begin(stored);
    const me = {};
    this.#waiting++;
    loading.waiters.add(me);
    let isGone = false;
    const gone = gaveUp(signal, loadTimeoutMs, stored.name);
    try {
      return await Promise.race([loading.done, gone.promise]);
    } catch (error) {
      isGone = true;
      throw error;
    } finally {
      gone.stop();
      this.#waiting--;
      loading.waiters.delete(me);
      const giveBack = (loaded: Loaded) => {
        if (loading.granted.has(me)) this.#leaseOf(loaded).release();
      };
      if (isGone) loading.done.then(giveBack, () => {});
      if (isGone && loading.waiters.size === 0) {
        loading.abort.abort(
          new ModelLoadError('failed', `No request waits for the model '${stored.name}' any more.`),
        );
        if (this.#loading.get(stored.name) === loading) this.#loading.delete(stored.name);
      }
    }
  }

  #begin(stored: StoredModel): Loading {
    const { name } = stored;
    const abort = new AbortController();
    const before = this.#turn;
    const done = before.then(() => this.#load(stored, abort.signal, () => loading));
    const loading: Loading = { waiters: new Set(), granted: new Set(), abort, done };
    this.#turn = done.then(
      () => {},
      () => {},
    );
    const end = () => {
      if (this.#loading.get(name) === loading) this.#loading.delete(name);
    };
    done.then(end, end);
    this.#loading.set(name, loading);
    return loading;
  }

  async #load(stored: StoredModel, signal: AbortSignal, loading: () => Loading): Promise<Loaded> {
    const { name } = stored;
    const { models, loader, limits } = this.#parts;
    signal.throwIfAborted();
    const there = this.#loaded.get(name);
    if (there !== undefined) return this.#grant(there, loading());
    try {
      const measured = await loader.measure(stored, signal);
      const share = memoryShare(measured.fixedBytes, measured.mostCacheBytes, limits.memoryBytes);
      if (share === null) {
        throw new ModelLoadError(
          'tooLarge',
          `The model '${name}' takes ${measured.fixedBytes} bytes of memory, and models that are loaded on demand have ${limits.memoryBytes} together (--model-memory-bytes).`,
        );
      }
      await this.#makeRoom(share.bytes, signal);
      signal.throwIfAborted();
      await measured.load(share.cacheBytes, signal);
      const model = models.find(name);
      if (model === undefined) throw new Error('it was unloaded at once.');
      return this.#grant(this.#add(model, share.bytes), loading());
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ModelLoadError) throw error;
      const reason = reasonFor(error, stored);
      throw new ModelLoadError('failed', `The model '${name}' cannot be loaded: ${reason}`, { cause: error });
    }
  }

  /** Unloads idle models until there is room, and waits for those in use where that is not enough. @throws the signal's reason */
  async #makeRoom(bytes: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      await Promise.all(this.#unloading.values());
      signal.throwIfAborted();
      const evicted = evictionsFor(this.#residents(), bytes, this.#parts.limits.memoryBytes);
      if (evicted?.length === 0) return;
      if (evicted === null) await pause(signal, LOOK_MS);
      else for (const { name } of evicted) this.#unload(this.#loaded.get(name)!);
    }
  }

  #residents(): Resident[] {
    return Array.from(this.#loaded.values(), (loaded) => ({ ...loaded, isBusy: isBusy(loaded) }));
  }

  #add(model: ServedModel, bytes: number): Loaded {
    const { id: name } = model;
    const loaded: Loaded = {
      name,
      bytes,
      keepAliveMs: this.#parts.limits.keepAliveMs,
      lastUsedMs: performance.now(),
      leases: 0,
      model,
      leave: () => {},
    };
    const onStep = () => {
      loaded.lastUsedMs = performance.now();
    };
    loaded.leave = model.statistics.onStats(onStep);
    this.#loaded.set(name, loaded);
    this.#own.add(model);
    return loaded;
  }

  /** Gives a lease to each request that waits. */
  #grant(loaded: Loaded, loading: Loading): Loaded {
    loading.granted = new Set(loading.waiters);
    loaded.leases += loading.granted.size;
    this.#tidy();
    return loaded;
  }

  #forget(loaded: Loaded): void {
    if (this.#loaded.get(loaded.name) !== loaded) return;
    loaded.leave();
    this.#loaded.delete(loaded.name);
  }

  #unload(loaded: Loaded): void {
    const { name } = loaded;
    this.#forget(loaded);
    const ended = this.#parts.loader
      .unload(name)
      .catch((error: unknown) => this.#parts.onError(error as Error))
      .finally(() => {
        if (this.#unloading.get(name) === ended) this.#unloading.delete(name);
      });
    this.#unloading.set(name, ended);
  }

  /** Unloads what has been idle for long enough, and comes back when the next one may have been. */
  #tidy(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const now = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const loaded of [...this.#loaded.values()]) {
      const leftMs = expiryMs(loaded) - now;
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
      else if (isBusy(loaded)) nextMs = Math.min(nextMs, LOOK_MS);
      else this.#unload(loaded);
    }
    if (nextMs === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => this.#tidy(), Math.min(Math.ceil(nextMs), MAX_TIMER_MS)).unref();
  }
}

function isBusy({ leases, model }: Loaded): boolean {
  if (leases > 0) return true;
  const { running, waiting } = model.statistics.counts();
  return running + waiting > 0;
}
