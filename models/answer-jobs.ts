import { parentPort } from 'node:worker_threads';
import { recordOf } from '../base/error-record.js';
import { type HelperReply, READY } from './helper-pool.js';

/**
 * Runs a HelperPool's thread: answers each job. @param transfer parts of a result that are transferred instead of
 * copied
 */
export function answerJobs<Job, Result>(
  answer: (job: Job) => Result,
  transfer: (result: Result) => ArrayBuffer[] = () => [],
): void {
  const port = parentPort;
  if (port === null) throw new Error('This module is the entry of a worker thread.');
  port.on('message', (job: Job) => {
    let reply: HelperReply<Result>;
    try {
      reply = { result: answer(job) };
    } catch (error) {
      reply = { failure: recordOf(error) };
    }
    port.postMessage(reply, 'result' in reply ? transfer(reply.result) : []);
  });
  port.postMessage(READY);
}
