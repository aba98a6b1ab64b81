// The fake executor in the place of a model's own: its options stand in the query of this module's URL. Where that
// names a file as `loads`, each load adds a byte to it, and only the first one succeeds. Where it names one as `heap`, a
// step that finds it empty writes into it what the worker's heap holds. `endToken` is what ends an answer.
import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { loadExecutor as loadFake } from '../../../dist/engine/executors/fake/load-fake-executor.js';

const { search, searchParams } = new URL(import.meta.url);
const loads = searchParams.get('loads');
const heap = searchParams.get('heap');

export function loadExecutor({ params }) {
  if (loads !== null) {
    appendFileSync(loads, '.');
    const { size } = statSync(loads);
    if (size > 1) throw new Error(`load ${size} fails`);
  }
  const loaded = loadFake({ enginePath: `fake:${search}`, params });
  if (heap !== null) tellHeap(loaded.executor);
  return searchParams.has('endToken')
    ? { ...loaded, endTokenIds: [Number(searchParams.get('endToken'))] }
    : loaded;
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
