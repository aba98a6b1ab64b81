import { Chain, type Link } from '../chain.js';
import { type Dated, DeadlineHeap } from '../deadline-heap.js';
import type { QueuedRequest } from '../dynamic-batcher.js';

/** What distinguishes sequences: 5n and '5' are two. */
export type SequenceKey = bigint | string;

/** What the sequence batcher reads of a request. */
export interface SequenceRequest {
  readonly sequence: { readonly key: SequenceKey; readonly start: boolean; readonly end: boolean };
  /** Microseconds that its sequence may wait for a slot; 0: any time. */
  readonly timeoutUs: number;
  /** Only requests with the same text go into one batch: see batch-fit.ts. */
  readonly fit: string;
}

/** A request that waits or runs. It is one row, and has neither level nor time limit once its sequence has a slot. */
export interface Queued<R> extends QueuedRequest, Dated {
  readonly request: R;
  readonly line: Line<R>;
  /** Number of its sequence: each START begins another one. */
  readonly sequence: number;
  start: boolean;
  end: boolean;
  enqueuedUs: number;
  /** When its line has waited for too long for a slot; Infinity: never. */
  readonly deadlineUs: number;
  /** Its place in the line's queue; null: it runs. */
  link: Link<Queued<R>> | null;
  /** The instance may run it: it is the first of its line, of which nothing runs. */
  isOffered: boolean;
  /** The model has put it back: it is to run once more. */
  isAgain: boolean;
}

/**
 * Where requests of one key wait, one after the other, from the first START to the END. A START in the middle
 * ends the sequence before it and begins another one, in the same line and slot:
 *
 *   runs    queue                              numbers of the sequences
 *   r1      r2  START r3  r4  END r5           7 7 | 8 8 8
 *
 * The line is open until its END has come, or its sequence is ended otherwise: what comes with its key while it is open stands here.
 */
export class Line<R> implements Dated {
  readonly key: SequenceKey;
  readonly queue = new Chain<Queued<R>>();
  /** Those of the queue that may not wait for any time. */
  readonly impatient = new DeadlineHeap<Queued<R>>();
  isOpen = true;
  /** The one that an instance has. */
  running: Queued<R> | null = null;
  /** The instance of its slot, or of its latest slot; -1: it has had none. */
  instance = -1;
  /** -1: it has none. */
  slot = -1;
  /** Its place in the backlog; null: it is not there. */
  backlog: Link<Line<R>> | null = null;
  /** Number of the sequence that the latest request to come belongs to. */
  latest = 0;
  /** Number of the sequence of which the instance may have a state; null: of none. */
  held: number | null = null;
  /** With a slot, when it has been idle for too long; in the backlog, when it has waited for too long. */
  deadlineUs = Number.POSITIVE_INFINITY;
  readonly order: number;
  heapIndex = -1;

  constructor(key: SequenceKey, order: number) {
    this.key = key;
    this.order = order;
  }

  get hasSlot(): boolean {
    return this.slot >= 0;
  }

  /** It has a slot, and nothing to do. */
  get isIdle(): boolean {
    return this.hasSlot && this.running === null && this.queue.size === 0;
  }
}
