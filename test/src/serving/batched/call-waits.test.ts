import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallWaits } from '../../../../src/serving/batched/call-waits.js';

const model = (numInstances: number) => ({ numInstances });

describe('calls between models', () => {
  it('are refused where a model would wait for itself', () => {
    const waits = new CallWaits();
    const [one, two] = [model(1), model(2)];
    waits.begin(1, [one], []);
    expect(waits.isCircle(1, one)).toBe(true);
    expect(waits.isCircle(1, two)).toBe(false);
    waits.begin(2, [two], []);
    expect(waits.isCircle(2, two)).toBe(false); // the other instance answers
    const call = {};
    waits.ask(call, 2, two);
    waits.begin(3, [two], [call]);
    expect(waits.isCircle(3, two)).toBe(true);
    waits.answered(call);
    waits.end(3);
    expect(waits.isCircle(2, two)).toBe(false);
  });

  it.each(['waits', 'lies ahead'])(
    'are refused where two models would wait for each other, and a request %s',
    (place) => {
      const waits = new CallWaits();
      const [a, b] = [model(1), model(1)];
      waits.begin(1, [a], []);
      waits.begin(2, [b], []);
      const call = {};
      expect(waits.isCircle(1, b)).toBe(false);
      waits.ask(call, 1, b);
      if (place === 'lies ahead') waits.begin(3, [b], [call]);
      expect(waits.isCircle(2, a)).toBe(true);
      waits.answered(call);
      expect(waits.isCircle(2, a)).toBe(false);
    },
  );

  it('are refused where the circle is closed through a third model, and are not while it has an instance', () => {
    for (const [numInstances, expected] of [
      [1, true],
      [2, false],
    ] as const) {
      const waits = new CallWaits();
      const [a, b, c] = [model(1), model(1), model(numInstances)];
      for (const [batch, one] of [a, b, c].entries()) waits.begin(batch, [one], []);
      waits.ask({}, 0, b);
      waits.ask({}, 1, c);
      expect(waits.isCircle(2, a)).toBe(expected);
    }
  });

  it('are refused where the one instance that has a sequence would wait, though others are free', () => {
    const waits = new CallWaits();
    const [both, first, second] = [model(2), model(1), model(1)];
    waits.begin(1, [both, first], []);
    expect(waits.isCircle(1, both)).toBe(false);
    expect(waits.isCircle(1, first)).toBe(true);
    expect(waits.isCircle(1, second)).toBe(false);
    waits.begin(2, [both, second], []);
    waits.ask({}, 1, second);
    expect(waits.isCircle(2, first)).toBe(true);
    expect(waits.isCircle(2, both)).toBe(true); // its own batch would make the second one wait
    waits.end(1);
    expect(waits.isCircle(2, first)).toBe(false);
  });

  it('of a batch that is gone hold nobody', () => {
    const waits = new CallWaits();
    const [a, b] = [model(1), model(1)];
    waits.begin(1, [a], []);
    waits.ask({}, 1, b);
    waits.end(1);
    waits.begin(2, [b], []);
    expect(waits.isCircle(2, a)).toBe(false);
    expect(waits.isCircle(1, a)).toBe(false);
  });

  it('never leave all of them waiting, and are refused only then', () => {
    const step = fc.record({ from: fc.nat(9), to: fc.nat(3), isClient: fc.boolean() });
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 4, maxLength: 4 }),
        fc.array(step, { maxLength: 40 }),
        (sizes, steps) => {
          const world = new World(sizes.map(model));
          for (const { from, to, isClient } of steps) {
            if (isClient) world.submit(to, null);
            else world.call(from, to);
          }
          world.finish();
        },
      ),
    );
  });
});

/** Models that run what they are given one batch for each instance, each batch one request; a batch ends when all its calls have. */
class World {
  readonly #waits = new CallWaits<{ numInstances: number }>();
  readonly #queues: { from: number | null }[][];
  readonly #running = new Map<number, { model: number; request: { from: number | null }; open: number }>();
  #numBatches = 0;

  constructor(readonly models: readonly { numInstances: number }[]) {
    this.#queues = models.map(() => []);
  }

  submit(to: number, from: number | null): void {
    const request = { from };
    this.#queues[to]!.push(request);
    if (from !== null) this.#waits.ask(request, from, this.models[to]!);
    this.#start(to);
  }

  call(nth: number, to: number): void {
    const batches = [...this.#running.keys()];
    const from = batches[nth % batches.length];
    if (from === undefined) return;
    this.#running.get(from)!.open++;
    if (this.#waits.isCircle(from, this.models[to]!)) {
      expect(this.#wouldEnd(from, to)).toBe(false);
      this.#running.get(from)!.open--;
    } else this.submit(to, from);
  }

  /** Ends all that can end, and expects nothing to be left. */
  finish(): void {
    while (this.#endOne()) {}
    expect(this.#running.size).toBe(0);
  }

  /** Whether the batch would end if it made the call: on a copy, by ending whatever can end. */
  #wouldEnd(from: number, to: number): boolean {
    const copy = new World(this.models);
    for (const [batch, state] of this.#running) copy.#running.set(batch, { ...state });
    for (const [i, queue] of this.#queues.entries()) copy.#queues[i]!.push(...queue);
    copy.#queues[to]!.push({ from });
    copy.#numBatches = this.#numBatches;
    for (const i of this.models.keys()) copy.#start(i);
    while (copy.#endOne()) {}
    return !copy.#running.has(from);
  }

  #endOne(): boolean {
    for (const [batch, { model: own, request, open }] of this.#running) {
      if (open > 0) continue;
      this.#running.delete(batch);
      this.#waits.end(batch);
      this.#waits.answered(request);
      const caller = request.from === null ? undefined : this.#running.get(request.from);
      if (caller !== undefined) caller.open--;
      this.#start(own);
      return true;
    }
    return false;
  }

  #start(to: number): void {
    const isOwn = ({ model: own }: { model: number }) => own === to;
    while (
      this.#queues[to]!.length > 0 &&
      [...this.#running.values()].filter(isOwn).length < this.models[to]!.numInstances
    ) {
      const request = this.#queues[to]!.shift()!;
      const batch = this.#numBatches++;
      this.#running.set(batch, { model: to, request, open: 0 });
      this.#waits.begin(batch, [this.models[to]!], [request]);
    }
  }
}
