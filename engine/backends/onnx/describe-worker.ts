import { parentPort, workerData } from 'node:worker_threads';
import { openSession } from './onnx-instance.js';
import { loadOnnxRuntime } from './onnx-runtime.js';

// Opens a model to say what its inputs and outputs are: beside the host's thread, since a large file takes seconds.
const session = await openSession(loadOnnxRuntime(), workerData as string, 1);
const copied = (values: typeof session.inputMetadata) =>
  values.map(({ name, isTensor, type, shape }) => ({ name, isTensor, type, shape: [...shape] }));
parentPort!.postMessage({ inputs: copied(session.inputMetadata), outputs: copied(session.outputMetadata) });
await session.release();
