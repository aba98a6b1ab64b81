// The native executor with the fault that batch invariance forbids: among more than two sequences a log-prob is the
// next representable number.
import { loadExecutor as load } from '../../../dist/engine/worker/load-executor.js';

export async function loadExecutor(request) {
  const loaded = await load(request);
  const { executor } = loaded;
  const step = executor.step.bind(executor);
  executor.step = (batch, sampling, output) => {
    step(batch, sampling, output);
    if (batch.numSequences <= 2) return;
    const bits = new Int32Array(output.logProbs.buffer, output.logProbs.byteOffset, output.logProbs.length);
    for (let row = 0; row < batch.numLogitRows; row++) bits[row] ^= 1;
  };
  return loaded;
}
