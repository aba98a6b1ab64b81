/**
 * The native code of ARM processors, on a machine that has none: compiled by Debian's cross compiler and run by QEMU, with Node.js for
 * ARM from npm. Exit code 1 if a test failed.
 *
 *     npm run test:arm
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { bundleTests } from './bundle.js';
import { compileAddon } from './compile.js';
import { checkPrograms, emulatedCommand, root } from './emulated-machine.js';

const HELP = `Tests the native code of ARM processors under QEMU.

  --all          all tests of the native executor, also those that take long, and a real model where there is one
  --tests PATH   these files instead (may be given more than once)
  --cpu NAME     QEMU's processor (default: max; cortex-a72 has no dot products of bytes)`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    all: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true },
    cpu: { type: 'string', default: 'max' },
  },
});

const NATIVE = 'test/engine/executors/native';
/** The kernels beside their twins and a reference, the same bits in every batch, goldens of tiny models. */
const SHORT = [
  'kernels/gemm',
  'kernels/attention',
  'kernels/rows',
  'kernels/vocab',
  'kernels/wide-row',
  'native-executor',
  'sampling',
].map((name) => `${NATIVE}/${name}.test.ts`);
const LONG = ['test/reference/tiny.test.ts'];

function testsOf(): string[] {
  if (flags.tests !== undefined) return flags.tests;
  if (!flags.all) return SHORT;
  const names = readdirSync(NATIVE, { recursive: true, encoding: 'utf8' });
  return [...names.filter((name) => name.endsWith('.test.ts')).map((name) => `${NATIVE}/${name}`), ...LONG];
}

/** One process for each file: an end by a signal is that file's. */
function runFile(script: string, test: string, addon: string): boolean {
  const [program, args] = emulatedCommand(script, [test], flags.cpu);
  const env = { ...process.env, SKEIN_PREBUILD: addon };
  const { status, signal, stdout } = spawnSync(program, args, {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  console.log(`${test.split('/tests/')[1]}: ${stdout.trim()}${signal === null ? '' : ` ended by ${signal}`}`);
  return status === 0;
}

async function main(): Promise<void> {
  checkPrograms();
  const startMs = performance.now();
  const [addon, { script, tests }] = [await compileAddon(), await bundleTests(testsOf())];
  console.log(`arm: compiled in ${Math.round((performance.now() - startMs) / 1000)} s`);
  const failed = tests.filter((test) => !runFile(script, test, addon));
  if (failed.length > 0) throw new Error(`${failed.length} of ${tests.length} files failed`);
  console.log(`arm: ${tests.length} files passed on an emulated ${flags.cpu}`);
}

if (flags.help) console.log(HELP);
else {
  await main().catch((error: Error) => {
    console.error(`arm: FAILED. ${error.message}`);
    process.exitCode = 1;
  });
}
