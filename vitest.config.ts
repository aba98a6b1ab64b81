import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * Tests of state machines, parsers and other functions: they start no process and no thread, load no addon, and change
 * neither the environment nor anything global. Hundreds of small files would otherwise cost a process each.
 */
const PURE = [
  'test/scheduler/**',
  'test/kvcache/**',
  'test/callbacks/queue/**',
  'test/engine/decoding/**',
  'test/engine/encoder/**',
  'test/engine/guided/sources/**',
  'test/engine/loop/**',
  'test/engine/network/**',
  'test/engine/schemes/**',
  'test/engine/simulation/**',
  'test/engine/speculation/**',
  'test/models/architectures/**',
  'test/src/generation/{reasoning,tools}/**',
  'test/src/server/dashboard/{formation,page,schemes}/**',
  'test/src/top/**',
  'test/tools/loadgen/{answer-reader,checks,data-files,latency-histogram,report,schedule,sweep}*',
  'test/tools/support/**',
].map((glob) => `${glob.replace(/\*\*$/, '**/*')}.test.ts`);

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
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: { name: 'apart', include: ['test/**/*.test.ts'], exclude: PURE, pool: 'forks' },
      },
      // Behind the others, which are longer: so both workers are busy to the end.
      { extends: true, test: { name: 'pure', include: PURE, pool: 'threads', isolate: false } },
    ],
    // A bound for hangs, not for speed: the real model's tests take their time on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
  },
});
