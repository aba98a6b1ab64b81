import type { Backend } from '../backend.js';

/**
 * Models in JavaScript and TypeScript: their code reveals nothing before it runs, so the configuration says
 * it all.
 */
export const moduleBackend: Backend = {
  name: 'module',
  platforms: [],
  runsSequences: true,
  defaultFilename: 'model.mjs',
  instanceKind: 'thread',
  readsParameters: true,
  problem: async () => null,
  describe: async () => ({}),
  entry: new URL('./module-instance.js', import.meta.url),
};
