import { parentPort, workerData } from 'node:worker_threads';
import { recordOf } from '../../../base/error-record.js';
import { findEngines } from '../find-engines.js';
import { ABORT, type EnginesReply, type SilentOptions } from './find-engines-aside.js';
import type { MeasureReply } from './measure-aside.js';
import { measureModel } from './model-measure.js';

/** What is done in the thread: engines are found, or the model of a path is measured. One file for both has the readers of models once. */
export type ModelFilesTask = { engines: SilentOptions } | { measure: string };

const port = parentPort;
if (port === null) throw new Error('This module is the entry of a worker thread.');
const task = workerData as ModelFilesTask;
const abort = new AbortController();
port.on('message', (message) => {
  if (message === ABORT) abort.abort();
});
port.postMessage('engines' in task ? await enginesOf(task.engines) : await measureOf(task.measure));
port.close();

async function enginesOf(options: SilentOptions): Promise<EnginesReply> {
  try {
    return { found: await findEngines({ ...options, signal: abort.signal }) };
  } catch (error) {
    return { failure: recordOf(error) };
  }
}

async function measureOf(path: string): Promise<MeasureReply> {
  try {
    return { measure: await measureModel(path) };
  } catch (error) {
    return { failure: recordOf(error) };
  }
}
