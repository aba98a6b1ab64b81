import { InferError } from '../../../callbacks/infer/infer-error.js';
import { type CalledModel, CallWaits } from './call-waits.js';

/** Batches of all models of this process, and which of them wait for each other. */
export const callWaits = new CallWaits<CalledModel>();

/** What a request to a model may wait for: any instance, or that which has its sequence. */
export class CalledParts {
  readonly #name: string;
  readonly #model: CalledModel;
  readonly #isBound: boolean;
  readonly #instances = new Map<number, CalledModel>();

  /** @param isBound requests may wait for one instance alone */
  constructor(name: string, model: CalledModel, isBound: boolean) {
    this.#name = name;
    this.#model = model;
    this.#isBound = isBound;
  }

  /** @param instance null: any of them */
  of(instance: number | null): CalledModel {
    if (instance === null || !this.#isBound) return this.#model;
    const known = this.#instances.get(instance) ?? { numInstances: 1 };
    this.#instances.set(instance, known);
    return known;
  }

  /** Those of which a batch keeps one. */
  keptBy(instance: number | null): readonly CalledModel[] {
    return instance === null ? [this.#model] : [this.#model, this.of(instance)];
  }

  /** A batch whose code asks keeps its instance until it is answered. @throws InferError where it never would be */
  check(caller: number, called: CalledModel): void {
    if (!callWaits.isCircle(caller, called)) return;
    const { numInstances } = this.#model;
    const all = numInstances === 1 ? 'its one instance waits' : `all of its ${numInstances} instances wait`;
    const waits = called === this.#model ? all : 'the instance that has the sequence waits';
    throw new InferError(
      `the model '${this.#name}' cannot be asked: ${waits} for answers which wait for this one`,
      'invalid',
    );
  }
}
