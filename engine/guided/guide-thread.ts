import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { GuideThreadSetup } from '../../callbacks/worker-messages.js';
import {
  BUSY_WITH,
  CONTROL_CELLS,
  DEAD,
  type GuideReply,
  type GuideRequest,
  type GuideThread,
  READING,
  REPLY_BELL,
  REQUEST_BELL,
} from './guide-messages.js';

/** Starts and ends guide threads: implemented by a thread with an event loop, which sees their end. */
export interface GuideThreadStarter {
  start(setup: GuideThreadSetup): void;
  /** Ends the thread that was started last. */
  stop(): void;
}

/**
 * The loop's interface to the thread that follows guides. The loop never returns to an event loop, so the thread is not
 * its own child: `starter` starts it on another thread, which writes into the control block when it has ended.
 */
export class GuideThreadPort implements GuideThread {
  readonly #starter: GuideThreadStarter;
  readonly #engine: Pick<GuideThreadSetup, 'enginePath' | 'vocabSize'>;
  #port: MessagePort | null = null;
  #control: Int32Array = new Int32Array(CONTROL_CELLS);
  /** Value of the bell at the last `wait`. */
  #seen = 0;

  constructor(starter: GuideThreadStarter, engine: Pick<GuideThreadSetup, 'enginePath' | 'vocabSize'>) {
    this.#starter = starter;
    this.#engine = engine;
  }

  get isDead(): boolean {
    return this.#port === null || Atomics.load(this.#control, DEAD) === 1;
  }

  get busyWith(): number {
    const of = (cell: number) => Atomics.load(this.#control, cell) - 1;
    return of(BUSY_WITH) >= 0 ? of(BUSY_WITH) : of(READING);
  }

  start(): void {
    this.#port?.close();
    const { port1, port2 } = new MessageChannel();
    const control = new SharedArrayBuffer(CONTROL_CELLS * Int32Array.BYTES_PER_ELEMENT);
    this.#port = port1;
    this.#control = new Int32Array(control);
    this.#seen = 0;
    this.#starter.start({ ...this.#engine, port: port2, control });
  }

  stop(): void {
    this.#port?.close();
    this.#port = null;
    this.#starter.stop();
  }

  post(request: GuideRequest): void {
    this.#port?.postMessage(request);
    Atomics.add(this.#control, REQUEST_BELL, 1);
    Atomics.notify(this.#control, REQUEST_BELL);
  }

  receive(): GuideReply | undefined {
    if (this.#port === null) return undefined;
    return receiveMessageOnPort(this.#port)?.message as GuideReply | undefined;
  }

  /** Returns at once if the bell has rung since the last call: there may be replies that `receive` has not seen. */
  wait(timeoutMs: number): boolean {
    const isHeard = () => {
      const bell = Atomics.load(this.#control, REPLY_BELL);
      const before = this.#seen;
      this.#seen = bell;
      return bell !== before;
    };
    if (isHeard()) return true;
    Atomics.wait(this.#control, REPLY_BELL, this.#seen, timeoutMs);
    return isHeard();
  }
}
