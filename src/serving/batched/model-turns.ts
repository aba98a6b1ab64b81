import type { InstanceTurns, RunTurn } from '../../../host/batch/instance-turns.js';
import type { InstanceGroup } from '../../../models/repository/model-config.js';
import { type Limited, limitsOf, type RateLimits } from '../rate-limits.js';

/** The turn that an instance has. */
interface Turn {
  /** Calls of other models by its batch that have no answer. */
  calls: number;
  /** Called when it is its turn again, or never will be. */
  onBack: (() => void)[];
}

interface ModelInstance extends Limited {
  /** null: it has none. */
  turn: Turn | null;
}

/**
 * The instances of one model before the server's rate limiter. While the code of a batch waits for other models, which may need the same resources,
 * its instance gives its resources back; it has them again before the last answer comes.
 */
export class ModelTurns implements InstanceTurns {
  readonly #limits: RateLimits;
  readonly #run: RunTurn;
  readonly #instances = new Map<number, ModelInstance>();

  constructor(limits: RateLimits, run: RunTurn) {
    this.#limits = limits;
    this.#run = run;
  }

  /** An instance of this group has come, under this number. */
  add(index: number, group: InstanceGroup): void {
    const instance: ModelInstance = { turn: null, onTurn: () => this.#begin(instance, index) };
    this.#instances.set(index, instance);
    this.#limits.add(instance, limitsOf(group));
  }

  /** The instance is gone. */
  remove(index: number): void {
    const instance = this.#instances.get(index);
    if (instance === undefined) return;
    this.release(index);
    this.#instances.delete(index);
    this.#limits.remove(instance);
  }

  /** Some instance has something to wait for. */
  static areNeeded(groups: readonly InstanceGroup[]): boolean {
    return groups.some((group) => limitsOf(group).needs.length > 0);
  }

  want(index: number, isWanted: boolean): void {
    const instance = this.#instances.get(index);
    if (instance?.turn === null) this.#limits.want(instance, isWanted);
  }

  release(index: number): void {
    const instance = this.#instances.get(index);
    if (instance === undefined) return;
    const { turn } = instance;
    instance.turn = null;
    this.#limits.release(instance);
    for (const back of turn?.onBack ?? []) back();
  }

  go(): void {
    this.#limits.go();
  }

  /**
   * The batch of an instance asks another model.
   * @returns to be called with the answer: resolves when the code may continue
   */
  waitForCall(index: number): () => Promise<void> {
    const instance = this.#instances.get(index)!;
    const { turn } = instance;
    if (turn === null) return () => Promise.resolve();
    turn.calls++;
    this.#limits.release(instance);
    this.#limits.go();
    return () => {
      turn.calls--;
      if (turn.calls > 0 || instance.turn !== turn) return Promise.resolve();
      return new Promise((resolve) => {
        turn.onBack.push(resolve);
        this.#limits.want(instance, true, { goesOn: true });
        this.#limits.go();
      });
    };
  }

  /** All instances are gone. */
  close(): void {
    for (const index of [...this.#instances.keys()]) this.remove(index);
  }

  #begin(instance: ModelInstance, index: number): boolean {
    if (instance.turn !== null) {
      for (const back of instance.turn.onBack.splice(0)) back();
      return true;
    }
    instance.turn = { calls: 0, onBack: [] };
    if (this.#run(index)) return true;
    instance.turn = null;
    return false;
  }
}
