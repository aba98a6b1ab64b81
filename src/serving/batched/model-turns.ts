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
  readonly #instances: readonly ModelInstance[];

  /** @param groups of the model, whose instances are numbered through */
  constructor(limits: RateLimits, groups: readonly InstanceGroup[], run: RunTurn) {
    this.#limits = limits;
    const each = groups.flatMap((group) => Array.from({ length: group.count }, () => limitsOf(group)));
    this.#instances = each.map((own, index) => {
      const instance: ModelInstance = { turn: null, onTurn: () => this.#begin(instance, index, run) };
      limits.add(instance, own);
      return instance;
    });
  }

  /** Some instance has something to wait for. */
  static areNeeded(groups: readonly InstanceGroup[]): boolean {
    return groups.some((group) => limitsOf(group).needs.length > 0);
  }

  want(index: number, isWanted: boolean): void {
    const instance = this.#instances[index]!;
    if (instance.turn === null) this.#limits.want(instance, isWanted);
  }

  release(index: number): void {
    const instance = this.#instances[index]!;
    const { turn } = instance;
    instance.turn = null;
    this.#limits.release(instance);
    for (const back of turn?.onBack ?? []) back();
  }

  go(): void {
    this.#limits.go();
  }

  /** The batch of an instance asks another model. @returns to be called with the answer: resolves when the code may go on */
  waitForCall(index: number): () => Promise<void> {
    const instance = this.#instances[index]!;
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

  /** The instances are gone. */
  close(): void {
    for (const [index, instance] of this.#instances.entries()) {
      this.release(index);
      this.#limits.remove(instance);
    }
  }

  #begin(instance: ModelInstance, index: number, run: RunTurn): boolean {
    if (instance.turn !== null) {
      for (const back of instance.turn.onBack.splice(0)) back();
      return true;
    }
    instance.turn = { calls: 0, onBack: [] };
    if (run(index)) return true;
    instance.turn = null;
    return false;
  }
}
