import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { BlockFormat } from './block-file.js';
import type { DiskAsk, DiskReply, DiskStore, DiskWorkerData } from './disk-messages.js';

export interface DiskThreadOptions {
  path: string;
  maxBytes: number;
  format: BlockFormat;
  /** The bell that wakes the loop. */
  doorbell: SharedArrayBuffer;
}

/** Milliseconds in which the thread writes what waits at the end. */
const CLOSING_MS = 5000;

/** A thread that reads and writes the cache's files, so that the loop never waits for a disk. */
export class DiskThread implements DiskStore {
  readonly format: BlockFormat;
  readonly maxBytes: number;
  readonly #port: MessagePort;
  readonly #worker: Worker;
  readonly #replies = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  #seen = 0;

  constructor({ path, maxBytes, format, doorbell }: DiskThreadOptions) {
    this.format = format;
    this.maxBytes = maxBytes;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const replies = this.#replies.buffer as SharedArrayBuffer;
    const workerData: DiskWorkerData = { port: port2, replies, doorbell, path, maxBytes, format };
    this.#worker = new Worker(new URL('./disk-worker.js', import.meta.url), {
      workerData,
      transferList: [port2],
      name: 'skein-disk-cache',
    });
    this.#worker.unref();
    // Its silence shows that it has died: callers wait for a reply for a limited time only.
    this.#worker.on('error', () => {});
    this.#port.unref();
  }

  post(ask: DiskAsk): void {
    this.#port.postMessage(ask, ask.type === 'write' ? [ask.bytes.buffer] : []);
  }

  receive(): DiskReply | null {
    // Read before the port, so that a reply that comes in between ends the next wait.
    this.#seen = Atomics.load(this.#replies, 0);
    return (receiveMessageOnPort(this.#port)?.message as DiskReply | undefined) ?? null;
  }

  wait(timeoutMs: number): void {
    Atomics.wait(this.#replies, 0, this.#seen, timeoutMs);
  }

  /** Ends the thread once it has written what it was given, or after a while. */
  close(): void {
    this.post({ type: 'close' });
    const untilMs = performance.now() + CLOSING_MS;
    for (let isOpen = true; isOpen && performance.now() < untilMs; ) {
      const reply = this.receive();
      isOpen = reply?.type !== 'closed';
      if (reply === null) this.wait(untilMs - performance.now());
    }
    this.#port.close();
    void this.#worker.terminate();
  }
}
