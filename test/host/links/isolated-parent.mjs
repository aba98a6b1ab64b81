// Starts an engine in a process of its own, which gets stuck: node isolated-parent.mjs loading|looping. Says the id of the process
// on stdout, and waits to be killed.
import { GptManager } from '../../../dist/src/index.js';

const isLoading = process.argv[2] === 'loading';
const waiting = [];
const manager = new GptManager({
  enginePath: 'fake:',
  modelType: 'InflightFusedBatching',
  maxBeamWidth: 1,
  schedulerPolicy: 'MAX_UTILIZATION',
  getInferenceRequests: (max) => waiting.splice(0, max),
  sendResponse: () => {},
  optionalParams: {
    isolate: true,
    executorModule: new URL(
      `../../support/modules/troubled-executor.mjs${isLoading ? '?sleeps' : ''}`,
      import.meta.url,
    ),
  },
});
if (!isLoading) {
  await manager.ready;
  const tokens = new Int32Array(3).fill(92); // the endless loop
  waiting.push({
    requestId: 1n,
    inputs: {
      input_ids: { shape: [1, 3], data: tokens },
      request_output_len: { shape: [1, 1], data: Int32Array.of(5) },
    },
  });
  manager.wake();
}
setTimeout(() => console.log(manager.pid), 300);
