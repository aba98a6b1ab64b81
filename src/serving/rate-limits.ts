import type { InstanceGroup } from '../../models/repository/model-config.js';
import {
  type InstanceLimits,
  type NeedProblem,
  RateLimiter,
  type ResourceUse,
} from '../../scheduler/tensors/rate-limiter.js';

/** An instance of any model: called when it is its turn; false where it has nothing to run any more. */
export interface Limited {
  onTurn(): boolean;
}

/** Which of a model's groups cannot be run. */
export interface GroupProblem extends NeedProblem {
  /** Places of the group, and of the resource in it. */
  group: number;
  resource: number;
}

/** The rate limiter of a server: it gives turns to the instances of all models that list resources. */
export class RateLimits {
  readonly #limiter: RateLimiter<Limited>;
  #isGoing = false;

  /** @param given copies of resources by name, from the command line */
  constructor(given: ReadonlyMap<string, number>) {
    this.#limiter = new RateLimiter(given);
  }

  /** What keeps these groups from being loaded; null: nothing. */
  problem(groups: readonly InstanceGroup[]): GroupProblem | null {
    const needs = groups.flatMap((group, i) =>
      limitsOf(group).needs.map((need, j) => ({ ...need, group: i, resource: j })),
    );
    const found = this.#limiter.problem(needs);
    if (found === null) return null;
    const { group, resource } = needs.find((need) => need === found.need)!;
    return { ...found, group, resource };
  }

  add(limited: Limited, limits: InstanceLimits): void {
    this.#limiter.add(limited, limits);
  }

  remove(limited: Limited): void {
    this.#limiter.remove(limited);
    this.go();
  }

  /** See RateLimiter. */
  want(limited: Limited, isWanted: boolean, options?: { goesOn: boolean }): void {
    this.#limiter.want(limited, isWanted, options);
  }

  /**
   * See RateLimiter: `go` follows when the one that was released has reported whether it wants another turn.
   */
  release(limited: Limited): void {
    this.#limiter.release(limited);
  }

  /** Gives all turns that there are. What a turn brings with it may ask for more, which is part of the same walk. */
  go(): void {
    if (this.#isGoing) return;
    this.#isGoing = true;
    try {
      for (let one = this.#limiter.next(); one !== null; one = this.#limiter.next())
        if (!one.onTurn()) this.#limiter.giveUp(one);
    } finally {
      this.#isGoing = false;
    }
  }

  get uses(): readonly ResourceUse[] {
    return this.#limiter.uses;
  }

  get waiting(): number {
    return this.#limiter.waiting;
  }
}

/** What `rate_limiter` of a checked group says. */
export function limitsOf({ rate_limiter: limiter }: InstanceGroup): InstanceLimits {
  const needs = (limiter?.resources ?? []).map(({ name, global, count }) => ({
    name,
    isGlobal: global,
    count,
  }));
  return { needs, priority: Math.max(1, limiter?.priority ?? 0) };
}
