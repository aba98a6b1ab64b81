import { recordOf } from '../../base/error-record.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import type { WorkerFailure } from '../../callbacks/worker-messages.js';

/**
 * Runs the main function of a worker's thread. What it throws is the thread's last message and not an uncaught error: Node.js ends the
 * whole process where a thread is terminated while it reports one, and a thread is terminated just then if the host ends a native wait.
 */
export async function runWorker({ port }: Pick<WorkerWires, 'port'>, main: () => Promise<void> | void) {
  try {
    await main();
  } catch (thrown) {
    port.postMessage({ type: 'failed', error: recordOf(thrown) } satisfies WorkerFailure);
    process.exit(1);
  }
}
