import type { PackedAnswers } from '../../callbacks/infer/instance-messages.js';
import type { LoopWatch } from './loop-watch.js';

/**
 * Answer messages of one instance that the host has not taken yet: this many are what it handles at most in
 * one turn of its loop.
 */
export const SLICES_UNDER_WAY = 4;

/** Answers for one message. */
export interface AnswerSlice {
  answers: PackedAnswers & { bytes: Uint8Array<ArrayBuffer> };
  /** It waits no longer. */
  onSent(): void;
}

const ROOM = Promise.resolve();

/**
 * Sends answers of a worker as fast as the host takes them:
 *
 *   add -> [ waiting slices ] -> [ at most 4 under way ] -> host, which says `taken` for each in a turn of its own
 *              '-- `room` resolves when there are none
 */
export class AnswerFlow {
  readonly #send: (answers: AnswerSlice['answers']) => void;
  readonly #watch: Pick<LoopWatch, 'hold' | 'release'>;
  #waiting: AnswerSlice[] = [];
  #numUnderWay = 0;
  #room: { promise: Promise<void>; resolve(): void } | null = null;

  constructor(send: (answers: AnswerSlice['answers']) => void, watch: Pick<LoopWatch, 'hold' | 'release'>) {
    this.#send = send;
    this.#watch = watch;
  }

  add(slice: AnswerSlice): void {
    this.#waiting.push(slice);
    this.#sendSome();
    if (this.#waiting.length === 0 || this.#room !== null) return;
    let resolve = () => {};
    const promise = new Promise<void>((settle) => {
      resolve = settle;
    });
    this.#room = { promise, resolve };
    this.#watch.hold();
  }

  /** The host has handled a message. */
  noteTaken(): void {
    this.#numUnderWay = Math.max(0, this.#numUnderWay - 1);
    this.#sendSome();
  }

  /** Resolves when no slice waits. */
  get room(): Promise<void> {
    return this.#room?.promise ?? ROOM;
  }

  #sendSome(): void {
    while (this.#waiting.length > 0 && this.#numUnderWay < SLICES_UNDER_WAY) {
      const { answers, onSent } = this.#waiting.shift()!;
      this.#numUnderWay++;
      this.#send(answers);
      onSent();
    }
    if (this.#waiting.length > 0 || this.#room === null) return;
    this.#room.resolve();
    this.#room = null;
    this.#watch.release();
  }
}
