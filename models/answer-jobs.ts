import { parentPort } from 'node:worker_threads';
import { recordOf } from '../base/error-record.js';
import { type HelperReply, READY } from './helper-pool.js';

/**
 * Runs a HelperPool's thread or process: answers each job. @param transfer parts of a result that are transferred
 * instead of copied, which threads alone do
 */
export function answerJobs<Job, Result>(
  answer: (job: Job) => Result | Promise<Result>,
  transfer: (result: Result) => ArrayBuffer[] = () => [],
): void {
  const { onJob, send } = asker<Job, Result>();
  onJob(async (job: Job) => {
    let reply: HelperReply<Result>;
    try {
      reply = { result: await answer(job) };
    } catch (error) {
      reply = { failure: recordOf(error) };
    }
    send(reply, 'result' in reply ? transfer(reply.result) : []);
  });
  send(READY, []);
}

type Send<Result> = (message: HelperReply<Result> | typeof READY, transferred: ArrayBuffer[]) => void;

/** What asks this thread or process. */
function asker<Job, Result>(): { onJob(handle: (job: Job) => void): void; send: Send<Result> } {
  const port = parentPort;
  if (port !== null) {
    return {
      onJob: (handle) => port.on('message', handle),
      send: (message, transferred) => port.postMessage(message, transferred),
    };
  }
  if (process.send === undefined) throw new Error('This module is the entry of a worker thread.');
  return {
    onJob: (handle) => process.on('message', handle as (job: unknown) => void),
    send: (message) => process.send!(message),
  };
}
