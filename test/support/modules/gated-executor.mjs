// The fake executor, which computes a step only when it is let: `gate` among the parameters is shared memory with the
// number of steps that have begun and the number of those that may end.
import { loadExecutor as loadFake } from '../../../dist/engine/executors/fake/load-fake-executor.js';

export function loadExecutor(request) {
  const gate = new Int32Array(request.params.gate);
  const loaded = loadFake(request);
  const { executor } = loaded;
  const step = executor.step.bind(executor);
  executor.step = (...batch) => {
    const number = Atomics.add(gate, 0, 1) + 1;
    for (let allowed = Atomics.load(gate, 1); allowed < number; allowed = Atomics.load(gate, 1)) {
      Atomics.wait(gate, 1, allowed);
    }
    step(...batch);
  };
  return loaded;
}
