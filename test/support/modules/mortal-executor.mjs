// The fake executor, whose thread ends in a step that the test names. `mortal` among the parameters is shared memory: the number of steps
// that were begun, the one in which the thread ends (0: none), and how many executors were loaded.
import { loadExecutor as loadFake } from '../../../dist/engine/executors/fake/load-fake-executor.js';

export function loadExecutor(request) {
  const mortal = new Int32Array(request.params.mortal);
  const load = Atomics.add(mortal, 2, 1) + 1;
  if (load > 1 && load <= 1 + (request.params.failingLoads ?? 0)) throw new Error(`load ${load} fails`);
  const loaded = loadFake(request);
  const { executor } = loaded;
  if (request.params.isRenamed) executor.name = `fake ${load}`;
  for (const name of ['step', 'forward']) {
    const compute = executor[name].bind(executor);
    executor[name] = (...batch) => {
      if (Atomics.add(mortal, 0, 1) + 1 === Atomics.load(mortal, 1)) process.exit(3);
      return compute(...batch);
    };
  }
  return loaded;
}
