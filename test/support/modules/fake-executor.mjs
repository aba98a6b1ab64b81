// The fake executor in the place of a model's own: its options stand in the query of this module's URL. Where that
// names a file as `loads`, each load adds a byte to it, and only the first `goodLoads` (1) succeed. Where it names one as `heap`, a
// step that finds it empty writes into it what the worker's heap holds. Where it names one as `gate`, every step after the first
// three waits while that file is there, and where it names one as `loadGate`, so does every load after the first: a test holds a state
// until it has seen it. `endToken` is what ends an answer.
import { appendFileSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { loadExecutor as loadFake } from '../../../dist/engine/executors/fake/load-fake-executor.js';

const { search, searchParams } = new URL(import.meta.url);
const loads = searchParams.get('loads');
const heap = searchParams.get('heap');
const gate = searchParams.get('gate');
const loadGate = searchParams.get('loadGate');
const FREE_STEPS = 3;

export function loadExecutor({ params }) {
  if (loads !== null) {
    appendFileSync(loads, '.');
    const { size } = statSync(loads);
    if (size > Number(searchParams.get('goodLoads') ?? 1)) throw new Error(`load ${size} fails`);
  }
  if (loadGate !== null) passLoads();
  const loaded = loadFake({ enginePath: `fake:${search}`, params });
  if (gate !== null) holdSteps(loaded.executor);
  if (heap !== null) tellHeap(loaded.executor);
  return searchParams.has('endToken')
    ? { ...loaded, endTokenIds: [Number(searchParams.get('endToken'))] }
    : loaded;
}

/** Waits while the gate is there. */
function pass(file) {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (existsSync(file)) Atomics.wait(clock, 0, 0, 5);
}

function passLoads() {
  const seen = `${loadGate}.loads`;
  if (existsSync(seen)) pass(loadGate);
  writeFileSync(seen, '');
}

function holdSteps(executor) {
  let steps = 0;
  for (const name of ['step', 'begin']) {
    const run = executor[name].bind(executor);
    executor[name] = (...args) => {
      if (steps++ >= FREE_STEPS) pass(gate);
      run(...args);
    };
  }
}

function tellHeap(executor) {
  const step = executor.step.bind(executor);
  executor.step = (...args) => {
    if (statSync(heap, { throwIfNoEntry: false })?.size === 0) {
      globalThis.gc();
      globalThis.gc();
      writeFileSync(heap, String(getHeapStatistics().used_heap_size));
    }
    step(...args);
  };
}
