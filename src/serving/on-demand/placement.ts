import { evictionsFor, expiryMs, type MemoryShare, type Resident } from './residency.js';

/** Where a model is between its start and its end. */
type Stage = 'starting' | 'running' | 'ending';

interface Placed extends Resident {
  stage: Stage;
}

interface Wish {
  share: MemoryShare;
  /** Milliseconds of a clock until which it is wanted, unless the wish is repeated. */
  untilMs: number;
}

export interface PlacementOptions {
  /** Bytes of memory that all models take together. */
  memoryBytes: number;
  /** Milliseconds that a model stays after its last use; Infinity: for ever, but for want of memory. */
  keepAliveMs: number;
  start: (name: string, share: MemoryShare) => void;
  /** Lets a model end what it has, and go. */
  stop: (name: string) => void;
}

/** Milliseconds for which a wish holds: it is repeated every second. */
const WISH_MS = 3_000;
/** Milliseconds that a model stays at least: the requests that wanted it are on their way. */
const SETTLE_MS = 5_000;

/**
 * Decides which models are in memory: wanted models come, in the order of the wishes, and unused ones make
 * room. It has no clock and starts nothing: see PlacementOptions.
 *
 *   want --> room? --> start --> starting --> running --> idle for long, or room is wanted --> stop --> ending --> gone
 */
export class Placement {
  readonly #options: PlacementOptions;
  readonly #placed = new Map<string, Placed>();
  readonly #wishes = new Map<string, Wish>();

  constructor(options: PlacementOptions) {
    this.#options = options;
  }

  /** True for a model that takes memory now. */
  has(name: string): boolean {
    return this.#placed.has(name);
  }

  /** Bytes of all models that are not gone. */
  get usedBytes(): number {
    return [...this.#placed.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Requests wait for a model. @param share what it takes; it alone fits */
  want(name: string, share: MemoryShare, nowMs: number): void {
    const placed = this.#placed.get(name);
    if (placed !== undefined && placed.stage !== 'ending') {
      placed.lastUsedMs = nowMs;
      return;
    }
    this.#wishes.set(name, { share, untilMs: nowMs + WISH_MS });
    this.tick(nowMs);
  }

  /** It takes requests. */
  noteRunning(name: string, nowMs: number): void {
    const placed = this.#placed.get(name);
    if (placed?.stage !== 'starting') return;
    placed.stage = 'running';
    placed.lastUsedMs = nowMs;
    placed.isBusy = false;
  }

  /** @param held requests that it has */
  noteHeld(name: string, held: number, nowMs: number): void {
    const placed = this.#placed.get(name);
    if (placed?.stage !== 'running') return;
    if (held > 0 || placed.isBusy) placed.lastUsedMs = nowMs;
    placed.isBusy = held > 0;
    this.tick(nowMs);
  }

  /** It takes no memory any more, for whatever reason. */
  noteEnded(name: string, nowMs: number): void {
    this.#placed.delete(name);
    this.tick(nowMs);
  }

  /** Looks what is due; also to be called now and then. */
  tick(nowMs: number): void {
    for (const [name, { untilMs }] of this.#wishes) if (untilMs <= nowMs) this.#wishes.delete(name);
    for (const [name, placed] of this.#placed)
      if (this.#mayGo(placed, nowMs) && expiryMs(placed) <= nowMs) this.#stop(name, placed);
    for (const [name, { share }] of this.#wishes) {
      // Who came first is served first, or a large model would never find room.
      if (!this.#place(name, share, nowMs)) return;
      this.#wishes.delete(name);
    }
  }

  #mayGo({ stage, isBusy, lastUsedMs }: Placed, nowMs: number): boolean {
    return stage === 'running' && !isBusy && nowMs - lastUsedMs >= SETTLE_MS;
  }

  #stop(name: string, placed: Placed): void {
    placed.stage = 'ending';
    this.#options.stop(name);
  }

  /** False: there is no room yet. */
  #place(name: string, share: MemoryShare, nowMs: number): boolean {
    const { memoryBytes, keepAliveMs, start } = this.#options;
    // It is on its way out: it comes back when it is gone.
    if (this.#placed.has(name)) return false;
    if (this.usedBytes + share.bytes <= memoryBytes) {
      const { bytes } = share;
      this.#placed.set(name, {
        name,
        bytes,
        keepAliveMs,
        isBusy: true,
        lastUsedMs: nowMs,
        stage: 'starting',
      });
      start(name, share);
      return true;
    }
    const staying = [...this.#placed.values()].filter(({ stage }) => stage !== 'ending');
    const residents = staying.map((placed) => ({ ...placed, isBusy: !this.#mayGo(placed, nowMs) }));
    for (const { name: evicted } of evictionsFor(residents, share.bytes, memoryBytes) ?? [])
      this.#stop(evicted, this.#placed.get(evicted)!);
    return false;
  }
}
