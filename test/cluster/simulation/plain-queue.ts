import type { EventQueue } from '../../../cluster/simulation/event-queue.js';

const EXPIRES_MS = 3000;
const MAX_WAITING = 8;
/** After all else that happens at one time. */
const LAST = 1;

interface Question {
  worker: number;
  count: number;
  endMs: number;
}

/** How many requests a worker has, and how many of them have not begun. */
export interface WorkerState {
  held: number;
  waiting: number;
}

/**
 * The rules of the work queue as one would write them down, with everything recounted: requests wait in the
 * order of their coming; the stream has as many as there are free places, and one for each worker; a worker
 * asks for what it has room for, and questions are served in turn, one request each, and asked again when
 * nothing has come for three seconds.
 */
export class PlainQueue {
  readonly #waiting: number[] = [];
  readonly #stream: number[] = [];
  #questions: Question[] = [];
  /** Questions that were asked again because their time was over. */
  numExpired = 0;

  /** @param give brings a request to a worker, which takes it at once */
  constructor(
    readonly places: number,
    readonly states: readonly WorkerState[],
    readonly events: EventQueue<() => void>,
    readonly give: (nowMs: number, request: number, worker: number) => void,
  ) {
    for (const worker of states.keys()) this.ask(0, worker);
  }

  add(nowMs: number, request: number): void {
    this.#waiting.push(request);
    this.deliver(nowMs);
  }

  /** A worker has got, begun or ended requests. */
  ask(nowMs: number, worker: number): void {
    const { held, waiting } = this.states[worker]!;
    const own = this.#questions.filter((one) => one.worker === worker);
    const asked = own.reduce((sum, { count }) => sum + count, 0);
    const count = Math.min(this.places - held, MAX_WAITING - waiting) - asked;
    if (count <= 0) return;
    const endMs = nowMs + EXPIRES_MS;
    this.#questions.push({ worker, count, endMs });
    this.events.push(endMs, () => this.#expire(endMs), LAST);
  }

  deliver(nowMs: number): void {
    for (;;) {
      const wanted = this.states.reduce((sum, { held }) => sum + Math.max(0, this.places - held) + 1, 0);
      while (this.#stream.length < wanted && this.#waiting.length > 0) {
        this.#stream.push(this.#waiting.shift()!);
      }
      if (this.#stream.length === 0 || this.#questions.length === 0) return;
      const question = this.#questions.shift()!;
      question.count -= 1;
      if (question.count > 0) this.#questions.push(question);
      this.give(nowMs, this.#stream.shift()!, question.worker);
      this.ask(nowMs, question.worker);
    }
  }

  /** Workers whose questions expire at one time ask in the order of their numbers. */
  #expire(nowMs: number): void {
    const over = this.#questions.filter(({ endMs }) => endMs <= nowMs);
    this.numExpired += over.length;
    this.#questions = this.#questions.filter(({ endMs }) => endMs > nowMs);
    for (const worker of [...new Set(over.map((one) => one.worker))].sort((a, b) => a - b)) {
      this.ask(nowMs, worker);
      this.deliver(nowMs);
    }
  }
}

/**
 * The rules of the work queue that knows the caches, as one would write them down: as long as any worker has room, the oldest request goes
 * to the one of these that the router chooses.
 */
export class PlainRoutedQueue {
  readonly #waiting: number[] = [];

  constructor(
    readonly places: number,
    readonly states: readonly WorkerState[],
    readonly route: (request: number, mayHave: (worker: string) => boolean) => number,
    readonly give: (nowMs: number, request: number, worker: number) => void,
  ) {}

  add(nowMs: number, request: number): void {
    this.#waiting.push(request);
    this.deliver(nowMs);
  }

  ask(): void {}

  deliver(nowMs: number): void {
    const hasRoom = ({ held, waiting }: WorkerState) => held < this.places && waiting < MAX_WAITING;
    while (this.#waiting.length > 0 && this.states.some(hasRoom)) {
      const request = this.#waiting.shift()!;
      const worker = this.route(request, (name) => hasRoom(this.states[Number(name)]!));
      this.give(nowMs, request, worker);
    }
  }
}
