import { Worker } from 'node:worker_threads';
import { DEAD, type GuideThreadSetup, REPLY_BELL } from './guide-messages.js';
import type { GuideThreadStarter } from './guide-thread.js';

/** Starts threads that follow guides, in a thread with an event loop; one at a time. */
export class GuideThreadHost implements GuideThreadStarter {
  #worker: Worker | null = null;

  start(setup: GuideThreadSetup): void {
    this.stop();
    const control = new Int32Array(setup.control);
    const worker = new Worker(new URL('./guide-worker.js', import.meta.url), {
      workerData: setup,
      transferList: [setup.port],
      name: 'skein-guides',
    });
    worker.unref();
    // The loop hears of it by the control block, and says so to the requests that need it.
    worker.on('error', () => {});
    worker.on('exit', () => {
      Atomics.store(control, DEAD, 1);
      Atomics.add(control, REPLY_BELL, 1);
      Atomics.notify(control, REPLY_BELL);
    });
    this.#worker = worker;
  }

  stop(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }
}
