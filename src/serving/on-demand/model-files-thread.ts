import { Worker } from 'node:worker_threads';
import { requireThreadRoom } from '../../../base/address-space.js';
import type { ModelFilesTask } from './model-files-worker.js';

/** A thread that reads models' files, and its only message. */
export interface ModelFilesThread<Reply> {
  thread: Worker;
  reply: Promise<Reply>;
}

/** Begins a task in a thread of its own. @param ended why there is no message where the thread ends without one, by its exit code */
export function beginModelFiles<Reply>(
  task: ModelFilesTask,
  ended: (code: number) => string,
): ModelFilesThread<Reply> {
  requireThreadRoom();
  const thread = new Worker(new URL('./model-files-worker.js', import.meta.url), { workerData: task });
  const reply = new Promise<Reply>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(ended(code))));
  });
  return { thread, reply };
}
