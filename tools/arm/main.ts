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

  --all          all tests of the native executor, and tiny models beside Hugging Face transformers: hours
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

interface TestFile {
  path: string;
  /** Pattern of the names of its tests that run; absent: all. */
  names?: string;
}

const kernelFile = (name: string, names: string): TestFile => ({
  path: `${NATIVE}/kernels/${name}.test.ts`,
  names,
});

/**
 * What an emulator does in minutes: products of each format with the bits that x86 has, every other kernel beside its twin in plain
 * C++, and whole networks, in one precision after another, beside a naive one. Left out is what has no instruction of its own: the
 * executor's checks, the twins' own tests, larger shapes.
 */
const SHORT: readonly TestFile[] = [
  kernelFile('stored-bits', 'neon'),
  kernelFile('gemm', 'neonbf16 gives the bits'),
  kernelFile('attention', '(neon|neonbf16) gives the bits'),
  kernelFile('rows', 'neon gives the bits'),
  kernelFile('vocab', 'neon gives the bits'),
  kernelFile('wide-row', 'bits of every other table'),
  {
    path: `${NATIVE}/native-executor.test.ts`,
    names: 'on neon.*(f32, 16 tokens|bf16 weights and cache|a cache in int8)',
  },
  { path: 'test/reference/tiny.test.ts', names: 'tiny gqa .* on neon' },
];
const LONG: readonly TestFile[] = [{ path: 'test/reference/tiny.test.ts' }];

function testsOf(): readonly TestFile[] {
  if (flags.tests !== undefined) return flags.tests.map((path) => ({ path }));
  if (!flags.all) return SHORT;
  const names = readdirSync(NATIVE, { recursive: true, encoding: 'utf8' });
  return [
    ...names.filter((name) => name.endsWith('.test.ts')).map((name) => ({ path: `${NATIVE}/${name}` })),
    ...LONG,
  ];
}

/** One process for each file: an end by a signal is that file's. Returns whether it passed. */
function runFile(script: string, bundle: string, { path, names }: TestFile, addon: string): boolean {
  const startMs = performance.now();
  const [program, args] = emulatedCommand(script, [bundle], flags.cpu);
  const short = names === undefined ? {} : { SKEIN_TEST_NAMES: names, SKEIN_TEST_SCALE: 'short' };
  const { status, signal, stdout } = spawnSync(program, args, {
    cwd: root,
    env: { ...process.env, ...short, SKEIN_PREBUILD: addon },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  const end = signal === null ? '' : ` ended by ${signal}`;
  console.log(`${path}: ${stdout.trim()}${end} (${Math.round((performance.now() - startMs) / 1000)} s)`);
  return status === 0;
}

async function main(): Promise<void> {
  checkPrograms();
  const startMs = performance.now();
  const files = testsOf();
  const [addon, { script, tests }] = [await compileAddon(), await bundleTests(files.map(({ path }) => path))];
  console.log(`arm: compiled in ${Math.round((performance.now() - startMs) / 1000)} s`);
  const failed = files.filter((file, i) => !runFile(script, tests[i]!, file, addon));
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
