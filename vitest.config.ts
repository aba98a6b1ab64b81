import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Tests of pure modules import the TypeScript sources; tests that start worker threads or the
// command line import the compiled package by its own name, as a user of it does.
export default defineConfig({
  resolve: {
    alias: {
      'skein/loadgen': fileURLToPath(new URL('./dist/tools/loadgen/index.js', import.meta.url)),
      skein: fileURLToPath(new URL('./dist/src/index.js', import.meta.url)),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // A bound for hangs, not for speed: the real model's tests take their time on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
  },
});
