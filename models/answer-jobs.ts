import { parentPort } from 'node:worker_threads';
import { codeOf, textOf } from '../base/skein-error.js';
import { type HelperFailure, type HelperReply, READY } from './helper-pool.js';

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
      reply = { failure: failureOf(error) };
    }
    port.postMessage(reply, 'result' in reply ? transfer(reply.result) : []);
  });
  port.postMessage(READY);
}

function failureOf(thrown: unknown): HelperFailure {
  const code = codeOf(thrown);
  const name = thrown instanceof Error ? thrown.name : 'Error';
  return { text: textOf(thrown), name, code, held: code === null ? {} : { ...(thrown as Error) } };
}
