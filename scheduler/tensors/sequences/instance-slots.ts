import type { Queued } from './sequence-line.js';

/** Requests that an instance is to run now. */
export interface Taken<R> {
  /** At most one of each line. */
  readonly requests: Queued<R>[];
  /** Rows of the batch, of which some may be empty. */
  readonly slots: number;
  /** Request i is row slotOf(i). */
  readonly slotOf: (index: number) => number;
}

/** Which of the first requests of an instance's lines go into its next batch: a strategy of the sequence batcher. */
export interface InstanceSlots<R> {
  /** The first request of a line, of which nothing runs, may run from now on. */
  offer(queued: Queued<R>, nowUs: number): void;
  /** One that was offered goes. */
  withdraw(queued: Queued<R>): void;
  /** The next batch of the instance, which is free; null: nothing goes yet. What goes is offered no more. */
  take(nowUs: number, isDraining: boolean): Taken<R> | null;
  /** When `take` has something though nothing is offered until then; Infinity: never. */
  readonly dueUs: number;
  /** When `take` has something if the instance is free: `nowUs` or earlier where it does now; Infinity: never. */
  goesAtUs(nowUs: number, isDraining: boolean): number;
}
