import { parentPort, workerData } from 'node:worker_threads';
import { recordOf } from '../../../base/error-record.js';
import type { MeasureReply } from './measure-aside.js';
import { measureModel } from './model-measure.js';

const port = parentPort;
if (port === null) throw new Error('This module is the entry of a worker thread.');
const reply: MeasureReply = await measureModel(workerData as string).then(
  (measure) => ({ measure }),
  (error) => ({ failure: recordOf(error) }),
);
port.postMessage(reply);
port.close();
