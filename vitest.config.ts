import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { APART, LONG, MORE_APART, OUTSIDE } from './test/support/test-sets.js';

const EVERY = ['test/**/*.test.ts'];
/** What `npm test` leaves to `npm run test:all`. */
const MORE = [...OUTSIDE, ...LONG, ...MORE_APART];
/** Hundreds of files share a process: with more room for young objects, fewer of them are copied and looked at again. */
const SHARED = { isolate: false, execArgv: ['--max-semi-space-size=64'] };

// Tests of pure modules import the TypeScript sources; tests that start worker threads or the
// command line import the compiled package by its own name, as a user of it does.
export default defineConfig({
  resolve: {
    alias: {
      'skein/ai-sdk': fileURLToPath(new URL('./dist/src/ai-sdk/index.js', import.meta.url)),
      'skein/langchain': fileURLToPath(new URL('./dist/src/langchain/index.js', import.meta.url)),
      'skein/llamaindex': fileURLToPath(new URL('./dist/src/llamaindex/index.js', import.meta.url)),
      'skein/loadgen': fileURLToPath(new URL('./dist/loadgen/index.js', import.meta.url)),
      skein: fileURLToPath(new URL('./dist/src/index.js', import.meta.url)),
    },
  },
  test: {
    // Compiled modules are imported by Node.js itself, as users of the package do.
    server: { deps: { external: [/^(?!.*node_modules).*\/dist\//] } },
    pool: 'forks',
    maxWorkers: 2,
    setupFiles: ['test/support/processor-time.ts', 'test/support/property-seed.ts'],
    projects: [
      { extends: true, test: { name: 'apart', include: APART, exclude: MORE } },
      {
        extends: true,
        test: { name: 'together', include: EVERY, exclude: [...APART, ...MORE], ...SHARED },
      },
      { extends: true, test: { name: 'more', include: MORE_APART } },
      { extends: true, test: { name: 'more-together', include: MORE, exclude: MORE_APART, ...SHARED } },
    ],
    // A bound for hangs, not for speed: the real model's tests take their time on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
  },
});
