import { spawnSync } from 'node:child_process';
import { roundsOf } from './figures.js';

type Sanitizer = 'thread' | 'address';

/** Planted faults that each sanitizer must find first, with their names in its reports. */
const PLANTED: Record<Sanitizer, [string, string][]> = {
  thread: [['race', 'data race']],
  address: [
    ['bounds', 'heap-buffer-overflow'],
    ['overflow', 'signed integer overflow'],
    ['leak', 'detected memory leaks'],
  ],
};

const ENV: NodeJS.ProcessEnv = {
  ...process.env,
  TSAN_OPTIONS: 'halt_on_error=1:second_deadlock_stack=1',
  ASAN_OPTIONS: 'detect_leaks=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
};

function run(driver: string, args: readonly string[]) {
  const options = { env: ENV, encoding: 'utf8' as const, maxBuffer: 2 ** 26 };
  const first = spawnSync(driver, args, options);
  // ThreadSanitizer keeps addresses for itself that a system with many random bits gives away.
  if (!/unexpected memory mapping/.test(first.stderr ?? '')) return first;
  return spawnSync('setarch', ['-R', driver, ...args], options);
}

/**
 * Drives the native threads for some seconds, once the planted faults have been found: rounds by scenario.
 * @throws where one was not, or a round failed, or the sanitizer reports anything.
 */
export function runDriver(
  driver: string,
  sanitizer: Sanitizer,
  seconds: number,
  seed: number,
): Map<string, number> {
  for (const [fault, expected] of PLANTED[sanitizer]) {
    const { status, stdout, stderr, error } = run(driver, ['plant', fault]);
    if (status !== 0 && stderr?.includes(expected)) continue;
    throw new Error(
      `A planted fault (${fault}) was not found: ${error?.message ?? `status ${status}`}.\n${stdout}${stderr}`,
    );
  }
  console.log(
    `sanitize: ${PLANTED[sanitizer].length} planted faults were found; driving threads, seed ${seed}`,
  );
  const { status, stdout, stderr, error } = run(driver, [String(seconds), String(seed)]);
  if (status === 0) return roundsOf(stdout);
  throw new Error(`The driver ended with ${error?.message ?? status} (seed ${seed}).\n${stdout}${stderr}`);
}
