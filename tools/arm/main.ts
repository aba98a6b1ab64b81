/**
 * The native code of ARM processors, on a machine that has none: compiled by Debian's cross compiler and run by QEMU, with Node.js for
 * ARM from npm. Exit code 1 if a test failed.
 *
 *     npm run test:arm
 *     npm run test:arm -- --whole
 */
import { parseArgs } from 'node:util';
import { bundleTests } from './bundle.js';
import { compileAddon } from './compile.js';
import { checkPrograms, emulatedCommand } from './emulated-machine.js';
import { runFile } from './run-file.js';
import { SHORT, type TestFile, wholeSuites } from './test-files.js';

const HELP = `Tests the native code of ARM processors under QEMU.

  --whole        whole suites: the bitwise one, adapters, encoders and the real model, with Node.js for ARM: hours
  --tests PATH   these files instead (may be given more than once)
  --names REGEX  of these files the tests with such names
  --cpu NAME     QEMU's processor (default: max; cortex-a72 has no dot products of bytes)`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    whole: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true },
    names: { type: 'string' },
    cpu: { type: 'string', default: 'max' },
  },
});

function testsOf(): readonly TestFile[] {
  const { tests, names } = flags;
  if (tests !== undefined) return tests.map((path) => (names === undefined ? { path } : { path, names }));
  return flags.whole ? wholeSuites() : SHORT;
}

async function main(): Promise<void> {
  checkPrograms();
  const startMs = performance.now();
  const files = testsOf();
  const [addon, { script, tests }] = [await compileAddon(), await bundleTests(files.map(({ path }) => path))];
  console.log(`arm: compiled in ${Math.round((performance.now() - startMs) / 1000)} s`);
  const failed = files.filter(
    (file, i) => !runFile({ file, command: emulatedCommand(script, [tests[i]!], flags.cpu), addon }),
  );
  if (failed.length > 0) throw new Error(`${failed.length} of ${files.length} files failed`);
  console.log(`arm: ${files.length} files passed on an emulated ${flags.cpu}`);
}

if (flags.help) console.log(HELP);
else {
  await main().catch((error: Error) => {
    console.error(`arm: FAILED. ${error.message}`);
    process.exitCode = 1;
  });
}
