import type { Beat, ModelCard } from '../../../cluster/nats/beat.js';
import { modelKey } from '../../../cluster/nats/beat.js';
import { offersFor } from '../../../cluster/nats/worker-roster.js';

interface Known {
  beat: Beat;
  held: number;
  heardMs: number;
  toldMs: number;
  isProbed: boolean;
}

/** What WorkerRoster knows, without any index or sum: each answer is worked out from the last beats of all workers. */
export class SlowRoster {
  readonly workers = new Map<string, Known>();
  /** First card of each pool that has workers. */
  readonly cards = new Map<string, ModelCard>();

  beat(beat: Beat, nowMs: number): void {
    const { worker, pool, model, held } = beat;
    const before = this.workers.get(worker);
    if (beat.isGone) this.workers.delete(worker);
    else if (model !== undefined || this.cards.has(pool)) {
      if (!this.cards.has(pool)) this.cards.set(pool, model!);
      this.workers.set(worker, {
        ...{ beat, held, heardMs: nowMs, toldMs: before?.toldMs ?? nowMs, isProbed: false },
      });
    }
    this.#forgetPools();
  }

  remove(id: string): void {
    this.workers.delete(id);
    this.#forgetPools();
  }

  #forgetPools(): void {
    const pools = new Set([...this.workers.values()].map(({ beat }) => beat.pool));
    for (const pool of [...this.cards.keys()]) if (!pools.has(pool)) this.cards.delete(pool);
  }

  takersOf(pool: string): Known[] {
    return [...this.workers.values()].filter(({ beat }) => beat.pool === pool && !beat.isLeaving);
  }

  /** Pools that a model's workers are in, with what WorkerRoster sums up of each. */
  poolsOf(key: string) {
    const pools = [...this.cards].filter(([, card]) => modelKey(card) === key);
    return pools.map(([pool]) => {
      const takers = this.takersOf(pool);
      const sum = (of: (one: Known) => number) => takers.reduce((all, one) => all + of(one), 0);
      const free = ({ beat, held }: Known) => Math.max(0, beat.places - held);
      return {
        pool,
        takers: takers.map(({ beat }) => beat.worker).sort(),
        sums: {
          offers: sum(({ beat, held }) => offersFor({ places: beat.places, held })),
          free: sum(free),
          streamFree: sum((one) => (one.beat.cacheNumber === undefined ? free(one) : 0)),
          maxBlocks: sum(({ beat }) => beat.maxBlocks),
          usedBlocks: sum(({ beat }) => beat.usedBlocks),
        },
        fewestBlocks: Math.min(...takers.map(({ beat }) => beat.maxBlocks)),
        layouts: [...new Set(takers.flatMap(({ beat }) => beat.layout ?? []))].sort(),
      };
    });
  }
}
