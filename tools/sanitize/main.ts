/**
 * The native code under GCC's sanitizers: the addon's tests with AddressSanitizer and UndefinedBehaviorSanitizer, and its
 * threads with ThreadSanitizer, in a driver without Node.js. Exit code 1 if anything was found, or a planted fault was not.
 *
 *     npm run test:sanitize
 */
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { writeSection } from '../document-section.js';
import { runAddressTests } from './address.js';
import { compileAddon, compileDriver } from './compile.js';
import { runDriver } from './driver.js';
import { type Figures, figuresTable } from './figures.js';

const HELP = `Runs the native code under GCC's sanitizers.

  --only address|thread   one of them (default: both)
  --short                 without the tests that repeat the same code over all lengths and crowds, which take the longest,
                          with fewer shapes in the others, and without the emulated processors, which only tests run
  --long                  ten times the inputs and files, the threads for five minutes and for leaks too, more tests
  --tests PATH            the tests of these files instead (may be given more than once)
  --seed N                of the threads' schedules (default: the time of day, which is printed)
  --write                 writes the figures into SECURITY.md`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean' },
    only: { type: 'string' },
    long: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    tests: { type: 'string', multiple: true },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    write: { type: 'boolean', default: false },
  },
});

/** Tests that run the addon without workers or the compiled package. */
const TESTS = ['test/engine/executors/native', 'test/engine/hostile-builds.test.ts'];
/** Files in which each test runs the same code for another length or crowd, and the one of emulated tiles. */
const NOT_SHORT = [
  'attention-window',
  'batch-invariance',
  'draft-rejection',
  'kernels/attention',
  'kernels/attention-window',
  'kernels/tiles',
];
const MORE_TESTS = ['test/conformance', 'test/bitwise', 'test/models/checkpoints/fuzz.test.ts'];

async function address(): Promise<Figures> {
  const addon = await compileAddon({ isShort: flags.short });
  const tests = flags.tests ?? (flags.short ? shortTests() : [...TESTS, ...(flags.long ? MORE_TESTS : [])]);
  return runAddressTests(addon, tests, { fuzzFactor: flags.long ? 10 : 1, isShort: flags.short });
}

function shortTests(): string[] {
  const [folder, ...others] = TESTS as [string, ...string[]];
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const isLeftOut = (name: string) => NOT_SHORT.some((one) => name === `${one}.test.ts`);
  const kept = names.filter((name) => name.endsWith('.test.ts') && !isLeftOut(name));
  return [...kept.map((name) => `${folder}/${name}`), ...others];
}

async function thread(): Promise<Map<string, number>> {
  const seconds = flags.long ? 300 : 20;
  if (flags.long) runDriver(await compileDriver('address'), 'address', seconds, Number(flags.seed));
  return runDriver(await compileDriver('thread'), 'thread', seconds, Number(flags.seed));
}

async function main(): Promise<void> {
  if (flags.only !== undefined && flags.only !== 'address' && flags.only !== 'thread') {
    throw new Error(`--only is "${flags.only}", but it must be address or thread.`);
  }
  const rounds = flags.only === 'address' ? undefined : await thread();
  const figures = flags.only === 'thread' ? undefined : await address();
  const parts = [
    figures && `${figures.tests} tests, ${figures.inputs} malformed inputs, ${figures.files} changed files`,
    rounds && `rounds of threads: ${Array.from(rounds, ([name, count]) => `${name} ${count}`).join(', ')}`,
  ];
  console.log(`sanitize: nothing was found; ${parts.filter(Boolean).join('; ')}`);
  if (flags.write && figures && rounds)
    writeSection('SECURITY.md', 'sanitizers', figuresTable(figures, rounds));
}

if (flags.help) console.log(HELP);
else {
  await main().catch((error: Error) => {
    console.error(`sanitize: FAILED. ${error.message}`);
    process.exitCode = 1;
  });
}
