/** A model whose batches may wait for other models. */
export interface CalledModel {
  /** Batches that it can run at once. */
  readonly numInstances: number;
}

interface RunningBatch<Model> {
  /** Its model, and where requests may wait for one instance alone, that instance. */
  readonly models: readonly Model[];
  /** Calls of its code that have no answer: how many wait for a model, and how many are in which batch. Empty: it waits for none. */
  readonly waitsFor: Map<Model | number, number>;
}

interface Call<Model> {
  /** The batch whose code asks. */
  readonly from: number;
  readonly model: Model;
  /** The batch that it is in; null: it waits for one. */
  at: number | null;
}

/**
 * Who waits for whom where the code of models asks other models: a batch that waits keeps its instance.
 *
 *   a client -> A, batch 1 --call--> B           B's one instance runs batch 2, which waits for A
 *   a client -> B, batch 2 --call--> A           A's one instance runs batch 1, which waits for B: neither would ever end
 *
 * Of a model with sequences an instance is a model of its own, with one instance: a request waits for the instance that has its sequence.
 *
 * A call is answered at last if its model has an instance that does not wait for ever; a batch ends if all of its calls are
 * answered. Only calls complete a circle, so that each is looked at before it is made. A request that lies ahead of an instance which waits
 * for ever is not seen while another instance of its model is free.
 */
export class CallWaits<Model extends CalledModel> {
  readonly #batches = new Map<number, RunningBatch<Model>>();
  readonly #calls = new Map<object, Call<Model>>();
  /** Batches with calls that have no answer, by model. */
  readonly #numWaiting = new Map<Model, number>();

  /** An instance was given a batch with these requests, some of which may be calls. */
  begin(batch: number, models: readonly Model[], requests: readonly object[]): void {
    this.#batches.set(batch, { models, waitsFor: new Map() });
    for (const request of requests) {
      const call = this.#calls.get(request);
      if (call === undefined) continue;
      this.#count(call, -1);
      call.at = batch;
      this.#count(call, 1);
    }
  }

  /** The batch is done, or was lost: its calls are no longer awaited. */
  end(batch: number): void {
    const running = this.#batches.get(batch);
    if (running === undefined) return;
    if (running.waitsFor.size > 0) this.#countWaiting(running.models, -1);
    this.#batches.delete(batch);
  }

  /** The batch's code asks the model. */
  ask(request: object, from: number, model: Model): void {
    const call: Call<Model> = { from, model, at: null };
    this.#calls.set(request, call);
    this.#count(call, 1);
  }

  /** The request, which may be a call, has ended. */
  answered(request: object): void {
    const call = this.#calls.get(request);
    if (call === undefined) return;
    this.#calls.delete(request);
    this.#count(call, -1);
  }

  /** A call from the batch to the model would never be answered. */
  isCircle(from: number, model: Model): boolean {
    const caller = this.#batches.get(from);
    if (caller === undefined) return false;
    const isAnother = caller.models.includes(model) && caller.waitsFor.size === 0;
    if ((this.#numWaiting.get(model) ?? 0) + (isAnother ? 1 : 0) < model.numInstances) return false;
    return this.#stuckWith(from, model).has(from);
  }

  /** Batches that would wait for ever if this call were made: all that wait, less those that are found to end. */
  #stuckWith(from: number, model: Model): ReadonlySet<number> {
    const stuck = new Set([from]);
    for (const [batch, { waitsFor }] of this.#batches) if (waitsFor.size > 0) stuck.add(batch);
    const numStuck = new Map<Model, number>();
    const add = (models: readonly Model[], change: 1 | -1) => {
      for (const one of models) numStuck.set(one, (numStuck.get(one) ?? 0) + change);
    };
    for (const batch of stuck) add(this.#batches.get(batch)!.models, 1);
    const isFree = (one: Model) => (numStuck.get(one) ?? 0) < one.numInstances;
    // A batch that waits for nothing runs, or lies ahead of an instance: then it ends if an instance does.
    const ends = (target: Model | number) => {
      if (typeof target !== 'number') return isFree(target);
      const batch = this.#batches.get(target);
      return (
        batch === undefined ||
        (batch.waitsFor.size > 0 || target === from ? !stuck.has(target) : batch.models.every(isFree))
      );
    };
    for (let isChanged = true; isChanged; ) {
      isChanged = false;
      for (const batch of stuck) {
        const { models: own, waitsFor } = this.#batches.get(batch)!;
        if ((batch === from && !ends(model)) || ![...waitsFor.keys()].every(ends)) continue;
        stuck.delete(batch);
        add(own, -1);
        isChanged = true;
      }
    }
    return stuck;
  }

  #count({ from, model, at }: Call<Model>, change: 1 | -1): void {
    const caller = this.#batches.get(from);
    if (caller === undefined) return;
    const { waitsFor } = caller;
    const before = waitsFor.size;
    const target = at ?? model;
    const count = (waitsFor.get(target) ?? 0) + change;
    if (count <= 0) waitsFor.delete(target);
    else waitsFor.set(target, count);
    if (before === 0 && waitsFor.size > 0) this.#countWaiting(caller.models, 1);
    if (before > 0 && waitsFor.size === 0) this.#countWaiting(caller.models, -1);
  }

  #countWaiting(models: readonly Model[], change: 1 | -1): void {
    for (const model of models) {
      const count = (this.#numWaiting.get(model) ?? 0) + change;
      if (count === 0) this.#numWaiting.delete(model);
      else this.#numWaiting.set(model, count);
    }
  }
}
