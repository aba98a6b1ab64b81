import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * Tests whose files share two processes, one after the other: hundreds of small files would otherwise cost a process, and
 * the import of what they test, each. They start no server and no command line, change nothing global that they do not put
 * back, and measure no memory.
 */
const TOGETHER = [
  'test/{base,callbacks,host,network}/**/*.test.ts',
  'test/engine/!(container-limits|worker-death).test.ts',
  'test/engine/{batch,build,decoding,encoder,guided,intake,loop,options,request,schemes,simulation,speculation,worker}/**/*.test.ts',
  'test/kvcache/**/*.test.ts',
  'test/models/*/**/*.test.ts',
  'test/scheduler/**/*.test.ts',
  'test/src/{commands,generation,hub,top}/**/*.test.ts',
  'test/src/server/*.test.ts',
  'test/src/server/{documentation,metrics,openai}/**/*.test.ts',
  'test/src/server/dashboard/{formation,page,schemes}/**/*.test.ts',
  'test/{loadgen,tools/compare,tools/support}/!(http-load|benchmark|https).test.ts',
];
// Tests of pure modules import the TypeScript sources; tests that start worker threads or the
// command line import the compiled package by its own name, as a user of it does.
export default defineConfig({
  resolve: {
    alias: {
      'skein/loadgen': fileURLToPath(new URL('./dist/loadgen/index.js', import.meta.url)),
      skein: fileURLToPath(new URL('./dist/src/index.js', import.meta.url)),
    },
  },
  test: {
    pool: 'forks',
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: 'apart', include: ['test/**/*.test.ts'], exclude: TOGETHER } },
      // Behind the others, which are longer: so both workers are busy to the end.
      { extends: true, test: { name: 'together', include: TOGETHER, isolate: false } },
    ],
    // A bound for hangs, not for speed: the real model's tests take their time on a busy machine.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
  },
});
