import { MessageChannel, type ResourceLimits, Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../../base/address-space.js';
import type { GuideThreadSetup } from '../../callbacks/worker-messages.js';
import { DEAD, REPLY_BELL } from './guide-messages.js';
import type { GuideReaderData } from './guide-reader-worker.js';
import type { GuideThreadStarter } from './guide-thread.js';
import type { GuideWorkerData } from './guide-worker.js';

/** MiB that all guides together may take: exceeding this ends the thread and not the process. */
const HEAP_OF_GUIDES = 512;
/** Bytes per token of the vocabulary while the tokenizer is read. */
const BYTES_OF_TOKEN = 8192;

/** Starts threads that follow guides, in a thread with an event loop; one at a time, with one that reads guides for it. */
export class GuideThreadHost implements GuideThreadStarter {
  #workers: readonly Worker[] = [];

  start(setup: GuideThreadSetup): void {
    this.stop();
    const control = new Int32Array(setup.control);
    // The loop learns of a death through the control block, and makes the guides that it needs again.
    const tellDeath = () => {
      Atomics.store(control, DEAD, 1);
      Atomics.add(control, REPLY_BELL, 1);
      Atomics.notify(control, REPLY_BELL);
    };
    try {
      requireThreadRoom(2);
    } catch {
      tellDeath();
      return;
    }
    const { port1: reader, port2: follower } = new MessageChannel();
    const heap = HEAP_OF_GUIDES + Math.ceil((setup.vocabSize * BYTES_OF_TOKEN) / 2 ** 20);
    const workers = [
      newWorker(new URL('./guide-worker.js', import.meta.url), 'skein-guides', heap, {
        ...setup,
        reader,
      } satisfies GuideWorkerData),
      newWorker(new URL('./guide-reader-worker.js', import.meta.url), 'skein-guide-reader', HEAP_OF_GUIDES, {
        follower,
        control: setup.control,
      } satisfies GuideReaderData),
    ];
    for (const worker of workers) {
      worker.unref();
      worker.on('error', () => {});
      worker.on('exit', () => {
        for (const other of workers) void other.terminate();
        tellDeath();
      });
    }
    this.#workers = workers;
  }

  stop(): void {
    for (const worker of this.#workers) void worker.terminate();
    this.#workers = [];
  }
}

/** Starts a thread; ports in its data are transferred. */
function newWorker(script: URL, name: string, heap: number, data: GuideWorkerData | GuideReaderData): Worker {
  const resourceLimits: ResourceLimits = { maxOldGenerationSizeMb: heap };
  const ports = 'port' in data ? [data.port, data.reader] : [data.follower];
  return new Worker(script, {
    workerData: data,
    transferList: ports,
    name,
    resourceLimits,
  });
}
