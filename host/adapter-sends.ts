import type { RequestFailure } from '../callbacks/request-failure.js';
import type { InferenceRequest, Tensor } from '../callbacks/types.js';
import type { HostEntry } from './host-entry.js';
import { RoomQueue } from './room-queue.js';
import { type BroughtAdapter, SentAdapters } from './sent-adapters.js';

/** Bytes of adapters' weights that requests take to the engine at once; one request may have more. */
const MAX_ADAPTER_BYTES = 64 * 2 ** 20;

/** Calls into the host. */
interface AdapterSendsCalls {
  /** Has the engine ask for requests. */
  wake(): void;
  /** Says to the engine that it need not hold an adapter. */
  forgetAdapter(taskId: bigint): void;
  /** Fails a request whose tensors cannot be made. */
  fail(entry: HostEntry, error: unknown): void;
}

/**
 * Adapters of the requests that a host sends to its engine, and the requests that go there once more because of them:
 *
 *   queue --taken--> send ------------------------> engine
 *                     ^  ^                            |
 *           others end|  |again, or too much at once  | "the adapter is gone" / "there is no room for it"
 *                   short <---------------------------+
 */
export class AdapterSends {
  readonly #adapters: SentAdapters;
  readonly #calls: AdapterSendsCalls;
  /** Requests that go to the engine next, in this order: their adapters have to be sent again, or were too much at once. */
  readonly #next = new Set<HostEntry>();
  /**
   * Requests whose adapters do not fit together with those of others: they go to the engine again when one of
   * those ends.
   */
  readonly #short = new RoomQueue<HostEntry>();
  /** Requests of each adapter's task that have not ended. */
  readonly #tasks = new Map<bigint, number>();
  /**
   * Forgotten tasks of these: the engine is notified again when the last of their requests ends, which may
   * have sent the adapter again.
   */
  readonly #forgotten = new Set<bigint>();

  /** @param isInThread the engine runs in a thread of this process */
  constructor(isInThread: boolean, calls: AdapterSendsCalls) {
    this.#adapters = new SentAdapters(isInThread);
    this.#calls = calls;
  }

  /** Number of requests that wait for room for their adapter. */
  get numShort(): number {
    return this.#short.size;
  }

  /** Number of requests that go to the engine next. */
  get numNext(): number {
    return this.#next.size;
  }

  /** Requests that wait for room for their adapter, the oldest first. */
  parked(): Iterable<HostEntry> {
    return this.#short.parked();
  }

  /** True where a request waits here and not in the engine. */
  has(entry: HostEntry): boolean {
    return this.#next.has(entry) || this.#short.has(entry);
  }

  /** Counts a submitted request. */
  begin({ adapter }: HostEntry): void {
    if (adapter !== null) this.#tasks.set(adapter.taskId, (this.#tasks.get(adapter.taskId) ?? 0) + 1);
  }

  /**
   * Requests that go to the engine next, which no longer wait here. @param max below 0: all
   * @param only the one request that may go there now; null: any may
   */
  takeNext(max: number, only: HostEntry | null): HostEntry[] {
    const next = [...this.#next].filter((entry) => only === null || entry === only);
    const first = max < 0 ? next : next.slice(0, max);
    for (const entry of first) this.#next.delete(entry);
    return first;
  }

  /** The requests as they are sent. Those whose adapters would be too much at once come next. */
  send(taken: readonly HostEntry[]): InferenceRequest[] {
    const sent: InferenceRequest[] = [];
    let bytes = 0;
    for (const [i, entry] of taken.entries()) {
      const { request, adapter } = entry;
      if (bytes >= MAX_ADAPTER_BYTES) {
        const later = [...taken.slice(i), ...this.#next];
        this.#next.clear();
        for (const entry of later) this.#next.add(entry);
        this.#calls.wake();
        break;
      }
      if (adapter === null) {
        sent.push(request);
        continue;
      }
      if (!this.#short.admits(entry, request.requestId)) continue;
      const tensors = this.#tensorsOf(entry, adapter);
      if (tensors === null) continue;
      bytes += tensors.lora_weights?.data.byteLength ?? 0;
      sent.push({ ...request, inputs: { ...request.inputs, ...tensors } });
    }
    return sent;
  }

  /** Tensors of the request's adapter; null: they cannot be made, and the request has failed. */
  #tensorsOf(entry: HostEntry, adapter: BroughtAdapter): Record<string, Tensor> | null {
    try {
      return this.#adapters.tensorsFor(adapter);
    } catch (error) {
      this.#calls.fail(entry, error);
      return null;
    }
  }

  /** Whether a refusal is one of the adapter's: the engine has no room for it, or does not hold it any more. */
  refusalOf({ adapter }: HostEntry, failure: RequestFailure): 'no room' | 'gone' | null {
    if (adapter === null) return null;
    if (this.#adapters.isShort(adapter, failure)) return 'no room';
    return this.#adapters.isToSendAgain(adapter, failure) ? 'gone' : null;
  }

  /** The engine was lost: the next one holds no adapters. */
  forgetSent(): void {
    this.#adapters.forgetAll();
  }

  /** The request waits until another one's adapter leaves the engine. */
  park(entry: HostEntry): void {
    this.#short.refuse(entry, entry.request.requestId);
  }

  /** The request goes to the engine next, with the weights. */
  sendAgain(entry: HostEntry): void {
    this.#next.add(entry);
    this.#calls.wake();
  }

  /** The engine has found room for the request, and may have some for the next. */
  foundRoom(entry: HostEntry): void {
    if (this.#short.leave(entry)) this.#sendShort();
  }

  /** Forgets a request that has ended. */
  end(entry: HostEntry): void {
    this.#next.delete(entry);
    this.#short.leave(entry);
    this.#sendShort();
    this.#leaveTask(entry);
  }

  /** Says that no more requests with this task's adapter will come. */
  forget(taskId: bigint): void {
    this.#adapters.forget(taskId);
    this.#calls.forgetAdapter(taskId);
    if (this.#tasks.has(taskId)) this.#forgotten.add(taskId);
  }

  /** There may be room for one more adapter: of those that wait for it the oldest is tried again. */
  #sendShort(): void {
    const entry = this.#short.takeNext();
    if (entry !== null) this.sendAgain(entry);
  }

  #leaveTask({ adapter }: HostEntry): void {
    if (adapter === null) return;
    const { taskId } = adapter;
    const count = this.#tasks.get(taskId)! - 1;
    if (count > 0) {
      this.#tasks.set(taskId, count);
      return;
    }
    this.#tasks.delete(taskId);
    if (this.#forgotten.delete(taskId)) this.forget(taskId);
  }
}
