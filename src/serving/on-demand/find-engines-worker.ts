import { parentPort, workerData } from 'node:worker_threads';
import { recordOf } from '../../../base/error-record.js';
import { findEngines } from '../find-engines.js';
import { ABORT, type EnginesReply, type SilentOptions } from './find-engines-aside.js';

const port = parentPort;
if (port === null) throw new Error('This module is the entry of a worker thread.');
const abort = new AbortController();
port.on('message', (message) => {
  if (message === ABORT) abort.abort();
});
const reply: EnginesReply = await findEngines({
  ...(workerData as SilentOptions),
  signal: abort.signal,
}).then(
  (found) => ({ found }),
  (error) => ({ failure: recordOf(error) }),
);
port.postMessage(reply);
port.close();
