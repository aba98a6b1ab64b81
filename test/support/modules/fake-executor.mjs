// The fake executor in the place of a model's own: its options stand in the query of this module's URL. Where that
// names a file as `loads`, each load adds a byte to it, and only the first one succeeds.
import { appendFileSync, statSync } from 'node:fs';
import { loadExecutor as loadFake } from '../../../dist/engine/fake/load-fake-executor.js';

const { search, searchParams } = new URL(import.meta.url);
const loads = searchParams.get('loads');

export function loadExecutor({ params }) {
  if (loads !== null) {
    appendFileSync(loads, '.');
    const { size } = statSync(loads);
    if (size > 1) throw new Error(`load ${size} fails`);
  }
  return loadFake({ enginePath: `fake:${search}`, params });
}
