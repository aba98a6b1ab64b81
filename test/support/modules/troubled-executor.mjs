// An executor (the fake one, or with ?native the real one, or with &executor=NAME another real one) that gets
// into trouble on request: a prompt of at least three times the same token, one of TROUBLES, does it. `loads`
// among the parameters is shared memory: how often an executor was loaded, and from which load on loading
// fails (0: never). For workers in other processes the same goes by ?loads=FILE, to which each load adds a
// character, and &failing=LOAD. With ?sleeps it never ends to load. With ?fallback each load is reported as a
// fallback of its own.
import { appendFileSync, openSync, statSync } from 'node:fs';
import { loadExecutor as loadFake } from '../../../dist/engine/executors/fake/load-fake-executor.js';
import { loadExecutor as loadNative } from '../../../dist/engine/worker/load-executor.js';

const query = new URL(import.meta.url).searchParams;

let breaksMemory = false;
const TROUBLES = new Map([
  [90, () => process.exit(3)],
  // The statistics ask for the executor's memory, outside of what the loop guards.
  [91, () => (breaksMemory = true)],
  [92, () => forever()],
  [93, () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)],
  [94, () => fillMemory()],
  // A native call that nothing can interrupt: it returns when a test opens the pipe for writing.
  [95, () => openSync(query.get('pipe'), 'r')],
  // Only where the worker is a process of its own.
  [96, () => process.kill(process.pid, 'SIGSEGV')],
  [97, () => process.kill(process.pid, 'SIGKILL')],
  [98, () => process.kill(process.pid, 'SIGABRT')],
]);

function forever() {
  for (;;) query.get('');
}

function fillMemory() {
  const hoard = [];
  for (;;) hoard.push(Array.from({ length: 1000 }, (_, i) => ({ i })));
}

function troubleIn(batch) {
  for (let sequence = 0; sequence < batch.numSequences; sequence++) {
    const tokens = batch.tokenIds.subarray(batch.queryStart[sequence], batch.queryStart[sequence + 1]);
    if (tokens.length >= 3 && tokens.every((token) => token === tokens[0])) TROUBLES.get(tokens[0])?.();
  }
}

/** Number of this load, from 1, and of the first load that fails; 0: none fails. */
function countLoad({ loads = new SharedArrayBuffer(8) }) {
  const file = query.get('loads');
  if (file === null) return [Atomics.add(new Int32Array(loads), 0, 1) + 1, new Int32Array(loads)[1]];
  appendFileSync(file, '.');
  return [statSync(file).size, Number(query.get('failing'))];
}

export async function loadExecutor(request) {
  const [load, failing] = countLoad(request.params);
  if (query.has('sleeps')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (failing > 0 && load >= failing) throw new Error(`load ${load} fails`);
  if (query.has('executor')) request.params.executor = query.get('executor');
  const loaded = await (query.has('native') ? loadNative : loadFake)(request);
  if (query.has('fallback')) loaded.executorFallback = `load ${load}`;
  const { executor } = loaded;
  const step = executor.step.bind(executor);
  const memory = executor.memory.bind(executor);
  executor.step = (batch, ...rest) => {
    troubleIn(batch);
    step(batch, ...rest);
  };
  const begin = executor.begin?.bind(executor);
  executor.begin = (batch, ...rest) => {
    begin(batch, ...rest);
    troubleIn(batch); // while the step runs on a thread of the executor's own
  };
  executor.memory = () => {
    if (breaksMemory) throw new Error('the memory cannot be counted');
    return memory();
  };
  return loaded;
}
