import type { SimulatedRequest } from '../../engine/simulation/simulated-request.js';
import {
  type SimulatedIteration,
  Simulation,
  type SimulationOptions,
} from '../../engine/simulation/simulation.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';

/** Iterations that were begun and have not been noted yet. */
export type Begun =
  | { kind: 'iteration'; iteration: SimulatedIteration; events: KvCacheEvent[] }
  | { kind: 'steady'; run: SteadyRun };

/**
 * Consecutive iterations of one length, in which each request becomes a token longer. Times are in
 * nanoseconds.
 */
export interface SteadyRun {
  beginNs: number;
  stepNs: number;
  count: number;
  members: readonly SimulatedRequest[];
  /** The simulation has passed them. */
  isApplied: boolean;
}

/** Events of one iteration of one worker: more than its blocks. */
const MAX_EVENTS = 1_000_000;

/** A worker of a simulated cluster. Its simulation is made when its first request comes: many workers have none for long. */
export class SimulatedWorker {
  readonly index: number;
  readonly name: string;
  readonly requests = new Set<number>();
  isUp = true;
  /** Counts its lives: what an earlier one has begun does not end. */
  life = 0;
  begun: Begun | null = null;
  readonly #options: SimulationOptions;
  #simulation: Simulation | null = null;

  /** @param tellsCache whether its simulation has the events of its cache */
  constructor(
    index: number,
    options: Omit<SimulationOptions, 'enableBlockReuse' | 'maxEvents'>,
    tellsCache: boolean,
  ) {
    this.index = index;
    this.name = `${index}`;
    this.#options = { ...options, enableBlockReuse: true, maxEvents: tellsCache ? MAX_EVENTS : 0 };
  }

  get simulation(): Simulation {
    this.#simulation ??= new Simulation(this.#options);
    return this.#simulation;
  }

  get isIdle(): boolean {
    return this.#simulation === null || this.#simulation.active.length === 0;
  }

  /** Requests that have not run yet, or are paused: InProcessHost.waiting. */
  get waiting(): number {
    let count = 0;
    for (const { phase, blocksHeld } of this.#simulation?.active ?? []) {
      if (phase === 'context' && blocksHeld === 0) count += 1;
    }
    return count;
  }

  /** It is gone with all that it has. Returns its requests. */
  end(): number[] {
    const lost = [...this.requests];
    this.requests.clear();
    this.isUp = false;
    this.begun = null;
    this.life += 1;
    this.#simulation = null;
    return lost;
  }
}
