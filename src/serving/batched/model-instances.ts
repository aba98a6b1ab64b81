import { isDeepStrictEqual } from 'node:util';
import type { InstanceGroup, ModelConfig } from '../../../models/repository/model-config.js';
import type { RateLimits } from '../rate-limits.js';
import type { ModelHost } from './model-host.js';
import { ModelTurns } from './model-turns.js';

/** The instances of a model by their numbers at the host, their names, and their turns where a rate limiter gives them. */
export class ModelInstances {
  readonly #limits: RateLimits | null;
  /** Those that are to go are not among them. */
  readonly #present = new Map<number, NamedInstance>();
  /** Those that are to go too, until they are gone. */
  readonly #names = new Map<number, string>();
  #turns: ModelTurns | null = null;

  /** @param limits what instances of all models share; null: nothing */
  constructor({ instance_group }: ModelConfig, limits: RateLimits | null) {
    this.#limits = limits !== null && ModelTurns.areNeeded(instance_group) ? limits : null;
    for (const [i, instance] of instancesOf(instance_group).entries()) this.#note(i, instance);
  }

  /** Instances that are not to go. */
  get size(): number {
    return this.#present.size;
  }

  nameOf(index: number): string {
    return this.#names.get(index)!;
  }

  /** false: an instance executes as soon as it is free. */
  get haveTurns(): boolean {
    return this.#limits !== null;
  }

  /** Turns as the host asks for them; undefined: there are none. */
  get turns(): ((run: (instance: number) => boolean) => ModelTurns) | undefined {
    const limits = this.#limits;
    if (limits === null) return undefined;
    return (run) => {
      this.#turns = new ModelTurns(limits, run);
      for (const [i, { group }] of this.#present) this.#turns.add(i, group);
      return this.#turns;
    };
  }

  /** See ModelTurns.waitForCall. */
  waitForCall(index: number): (() => Promise<void>) | undefined {
    return this.#turns?.waitForCall(index);
  }

  /**
   * Has the instances of other groups: those that are in both stay, those that go end what they have, after this resolves.
   * @param within settles with the promise, or rejects where that takes too long @throws where one cannot be loaded: nothing has changed then
   */
  async become(
    { instance_group }: ModelConfig,
    host: ModelHost,
    within: (ready: Promise<unknown>) => Promise<void>,
  ): Promise<void> {
    const { added, removed } = changeOf(this.#present, instance_group);
    const coming = added.map((one) => host.addInstance((index) => this.#note(index, one)));
    try {
      await within(Promise.all(coming.map(({ ready }) => ready)));
    } catch (error) {
      for (const { index } of coming) this.#remove(index, host);
      throw error;
    }
    for (const index of removed) this.#remove(index, host);
  }

  /** The instance is gone. */
  noteRemoved(index: number): void {
    this.#names.delete(index);
    this.#turns?.remove(index);
  }

  /** All instances are gone. */
  close(): void {
    this.#turns?.close();
  }

  #note(index: number, instance: NamedInstance): void {
    this.#present.set(index, instance);
    this.#names.set(index, instance.name);
    this.#turns?.add(index, instance.group);
  }

  #remove(index: number, host: ModelHost): void {
    this.#present.delete(index);
    // It may be gone already: it could not be loaded.
    if (this.#names.has(index)) void host.removeInstance(index);
  }
}

/** An instance of a model as its configuration has it. */
interface NamedInstance {
  /** NAME_0, NAME_1, ... of its group. */
  readonly name: string;
  readonly group: InstanceGroup;
}

/** The instances of these groups. */
export function instancesOf(groups: readonly InstanceGroup[]): NamedInstance[] {
  return groups.flatMap((group) =>
    Array.from({ length: group.count }, (_, i) => ({ name: `${group.name}_${i}`, group })),
  );
}

/** What to do so that other groups have their instances: those that are in both stay. */
interface InstanceChange {
  readonly added: readonly NamedInstance[];
  /** Numbers of those that go. */
  readonly removed: readonly number[];
}

/** @param present instances by their numbers */
export function changeOf(
  present: ReadonlyMap<number, NamedInstance>,
  groups: readonly InstanceGroup[],
): InstanceChange {
  const wanted = instancesOf(groups);
  const isSame = (one: NamedInstance, other: NamedInstance) =>
    one.name === other.name && isDeepStrictEqual(one.group.rate_limiter, other.group.rate_limiter);
  return {
    added: wanted.filter((one) => ![...present.values()].some((other) => isSame(one, other))),
    removed: [...present].flatMap(([index, one]) =>
      wanted.some((other) => isSame(one, other)) ? [] : [index],
    ),
  };
}
