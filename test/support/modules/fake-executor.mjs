// The fake executor in the place of a model's own: its options stand in the query of this module's URL.
import { loadExecutor as loadFake } from '../../../dist/engine/fake/load-fake-executor.js';

export function loadExecutor({ params }) {
  return loadFake({ enginePath: `fake:${new URL(import.meta.url).search}`, params });
}
