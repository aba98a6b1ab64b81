/** A resource that an instance keeps while it executes. */
export interface ResourceNeed {
  readonly name: string;
  /** One pool for the whole system; false: one for each device, of which there is one. */
  readonly isGlobal: boolean;
  /** Copies, at least 1. */
  readonly count: number;
}

/** `rate_limiter` of an instance. */
export interface InstanceLimits {
  readonly needs: readonly ResourceNeed[];
  /** Weight of an execution: an instance of priority 2 gets half the chances of one of priority 1. At least 1. */
  readonly priority: number;
}

/** Why an instance could never run, or not together with the others. */
export interface NeedProblem {
  need: ResourceNeed;
  /** Copies that there are, by the command line; null: the resource is global for some instances and of a device for others. */
  limit: number | null;
}

/** A resource as it is now. */
export interface ResourceUse {
  readonly name: string;
  readonly isGlobal: boolean;
  readonly limit: number;
  readonly used: number;
}

interface Limited {
  readonly limits: InstanceLimits;
  /** Executions times priority. */
  scaled: number;
  /** Its place among those that began to wait; null: it does not wait. */
  waitsSince: number | null;
  /** Its next turn goes on with an execution that has been counted. */
  goesOn: boolean;
  holds: boolean;
}

interface Resource {
  isGlobal: boolean;
  limit: number;
  used: number;
  /** Instances that list it. */
  users: number;
}

/**
 * Says which instance executes next where executions need resources, across all models, as Triton's rate limiter does:
 *
 *   R1 4 copies    A waits, needs 3, executed 5 times, priority 1: 5      B goes: it has the lowest product.
 *   R2 1 copy      B waits, needs 3, executed 2 times, priority 2: 4      A waits for it; C needs nothing that A waits for,
 *                  C waits, needs R2, executed 9 times, priority 1: 9     and goes too.
 *
 * Of a resource there are as many copies as the instance with the largest need asks for, or as the command line says. Those that wait are taken in the
 * order of their executions times their priority, and of equal ones the one that waits longest. Where its resources are in use,
 * those after it do not take them, so that none waits for ever. A new instance starts at the lowest product of the others, so that it
 * does not take their turns until it has caught up.
 *
 * A state machine without a clock: a turn takes as many steps as the instances that wait have resources.
 * Source of the rules: docs/user_guide/rate_limiter.md of github.com/triton-inference-server/server. There the first that waits keeps all others back.
 */
export class RateLimiter<I extends object> {
  readonly #given: ReadonlyMap<string, number>;
  readonly #instances = new Map<I, Limited>();
  readonly #resources = new Map<string, Resource>();
  #numWaits = 0;

  /** @param given copies of resources, where they are not to follow from the needs */
  constructor(given: ReadonlyMap<string, number>) {
    this.#given = given;
  }

  /** Why instances with these needs may not come; null: they may. */
  problem(needs: readonly ResourceNeed[]): NeedProblem | null {
    const scopes = new Map<string, boolean>();
    for (const need of needs) {
      const { name, isGlobal, count } = need;
      const known = scopes.get(name) ?? this.#resources.get(name)?.isGlobal ?? isGlobal;
      scopes.set(name, isGlobal);
      if (known !== isGlobal) return { need, limit: null };
      const limit = this.#given.get(name);
      if (limit !== undefined && count > limit) return { need, limit };
    }
    return null;
  }

  /** @throws TypeError for one that `problem` refuses */
  add(instance: I, limits: InstanceLimits): void {
    if (this.problem(limits.needs) !== null)
      throw new TypeError('An instance whose needs cannot be met was added.');
    const others = Array.from(this.#instances.values(), ({ scaled }) => scaled);
    const scaled = others.reduce((least, one) => Math.min(least, one), others[0] ?? 0);
    this.#instances.set(instance, { limits, scaled, waitsSince: null, goesOn: false, holds: false });
    for (const { name, isGlobal } of limits.needs) {
      const resource = this.#resources.get(name) ?? { isGlobal, limit: 0, used: 0, users: 0 };
      resource.users++;
      this.#resources.set(name, resource);
    }
    this.#setLimits(limits);
  }

  /** What it holds is free. */
  remove(instance: I): void {
    const limited = this.#instances.get(instance);
    if (limited === undefined) return;
    this.release(instance);
    this.#instances.delete(instance);
    for (const { name } of limited.limits.needs) {
      const resource = this.#resources.get(name)!;
      if (--resource.users === 0) this.#resources.delete(name);
    }
    this.#setLimits(limited.limits);
  }

  /** It waits for its turn from now on, or does no more. One that holds its resources does not wait. */
  want(instance: I, isWanted: boolean, { goesOn = false } = {}): void {
    const limited = this.#instances.get(instance);
    if (limited === undefined || limited.holds) return;
    limited.goesOn = goesOn;
    if (!isWanted) limited.waitsSince = null;
    else limited.waitsSince ??= this.#numWaits++;
  }

  /** The instance whose turn it is: it has its resources until `release`, and does not wait any more. null: none can execute now. */
  next(): I | null {
    /** Resources for which one with an earlier turn waits. */
    const kept = new Set<string>();
    for (const [instance, limited] of this.#waiting()) {
      const { needs, priority } = limited.limits;
      const canRun = needs.every(({ name, count }) => !kept.has(name) && this.#free(name) >= count);
      if (!canRun) {
        for (const { name } of needs) kept.add(name);
        continue;
      }
      for (const { name, count } of needs) this.#resources.get(name)!.used += count;
      if (!limited.goesOn) limited.scaled += priority;
      limited.waitsSince = null;
      limited.holds = true;
      return instance;
    }
    return null;
  }

  /** It had its turn and nothing to execute: the turn does not count. */
  giveUp(instance: I): void {
    const limited = this.#instances.get(instance);
    if (limited?.holds && !limited.goesOn) limited.scaled -= limited.limits.priority;
    this.release(instance);
  }

  /** The execution is over, and so is its wait for a turn. */
  release(instance: I): void {
    const limited = this.#instances.get(instance);
    if (limited === undefined) return;
    limited.waitsSince = null;
    limited.goesOn = false;
    if (!limited.holds) return;
    limited.holds = false;
    for (const { name, count } of limited.limits.needs) this.#resources.get(name)!.used -= count;
  }

  /** All resources that some instance lists. */
  get uses(): readonly ResourceUse[] {
    return Array.from(this.#resources, ([name, { isGlobal, limit, used }]) => ({
      name,
      isGlobal,
      limit,
      used,
    }));
  }

  /** Instances that wait for their turn. */
  get waiting(): number {
    let count = 0;
    for (const { waitsSince } of this.#instances.values()) if (waitsSince !== null) count++;
    return count;
  }

  #waiting(): (readonly [I, Limited])[] {
    return [...this.#instances]
      .filter(([, { waitsSince }]) => waitsSince !== null)
      .sort(([, one], [, other]) => one.scaled - other.scaled || one.waitsSince! - other.waitsSince!);
  }

  #free(name: string): number {
    const { limit, used } = this.#resources.get(name)!;
    return limit - used;
  }

  /** Sets how many copies there are of the resources that an instance lists which has come or gone. */
  #setLimits({ needs: changed }: InstanceLimits): void {
    for (const { name } of changed) {
      const resource = this.#resources.get(name);
      if (resource !== undefined) resource.limit = this.#given.get(name) ?? this.#mostNeeded(name);
    }
  }

  #mostNeeded(name: string): number {
    let most = 0;
    for (const { limits } of this.#instances.values())
      for (const need of limits.needs) if (need.name === name) most = Math.max(most, need.count);
    return most;
  }
}
