import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './compile.js';
import { type Figures, figuresOf } from './figures.js';

/** Path of the compiler's library of a sanitizer. @throws if it has none. */
function libraryOf(name: string): string {
  const compiler = process.env.CXX ?? 'g++';
  const { stdout } = spawnSync(compiler, [`-print-file-name=${name}`], { encoding: 'utf8' });
  const path = stdout?.trim() ?? '';
  if (path.startsWith('/')) return path;
  throw new Error(
    `${compiler} has no ${name}; the sanitizers need GCC with its libraries (on Debian: apt-get install g++).`,
  );
}

export interface AddressOptions {
  /** Factor for the number of malformed inputs and changed files. */
  fuzzFactor: number;
  /** Fewer shapes, texts and draws: test/support/scale.ts. */
  isShort: boolean;
}

/** Runs Node.js with the sanitized addon; what AddressSanitizer says goes to files, since tests run in processes of their own. */
class SanitizedNode {
  readonly reports = mkdtempSync(join(tmpdir(), 'skein-sanitize-'));
  readonly #env: NodeJS.ProcessEnv;

  constructor(addon: string, { fuzzFactor, isShort }: AddressOptions) {
    const log = `log_path=${join(this.reports, 'report')}`;
    this.#env = {
      ...process.env,
      SKEIN_PREBUILD: addon,
      SKEIN_FUZZ_FACTOR: String(fuzzFactor),
      ...(isShort ? { SKEIN_TEST_SCALE: 'short' } : {}),
      // Node.js itself knows nothing of the sanitizer, which has to be there before it.
      LD_PRELOAD: [libraryOf('libasan.so'), libraryOf('libstdc++.so')].join(' '),
      // Memory that Node.js keeps to its end would be reported as leaks; the driver looks for those. V8 handles faults of its
      // own, and asks for memory that may be refused.
      ASAN_OPTIONS: `${log}:detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0`,
      UBSAN_OPTIONS: `${log}:halt_on_error=1:print_stacktrace=1`,
    };
  }

  run(args: readonly string[], stdio: 'inherit' | 'pipe' = 'pipe') {
    return spawnSync(process.execPath, args, {
      cwd: root,
      env: this.#env,
      encoding: 'utf8',
      stdio: ['ignore', stdio, stdio],
    });
  }

  /** Reports since the last call. */
  takeReports(): string[] {
    return readdirSync(this.reports).map((name) => {
      const path = join(this.reports, name);
      const text = readFileSync(path, 'utf8');
      rmSync(path);
      return text;
    });
  }

  remove(): void {
    rmSync(this.reports, { recursive: true, force: true });
  }
}

/** Sees that faults are found, in each table of kernels. @throws where one is not. */
function findPlanted(node: SanitizedNode): number {
  const planted = (args: string[], expected: string) => {
    const { status, stdout, stderr } = node.run(['tools/sanitize/planted.mjs', ...args]);
    // Undefined behaviour is reported on stderr, whatever log_path says.
    const said = [stdout, stderr, ...node.takeReports()].join('\n');
    if (status !== 0 && said.includes(expected)) return;
    throw new Error(
      `A planted fault (${args.join(' ')}) was not found: the run ended with ${status}.\n${said}`,
    );
  };
  const { status, stdout, stderr } = node.run(['tools/sanitize/planted.mjs', 'tables']);
  if (status !== 0)
    throw new Error(`The sanitized addon does not load: ${stderr}${node.takeReports().join('\n')}`);
  const tables = JSON.parse(stdout) as string[];
  for (const table of tables) planted(['bounds', table], 'heap-buffer-overflow');
  planted(['alignment'], 'misaligned address');
  return tables.length + 1;
}

/** Runs tests with the sanitized addon. @throws where one fails, or a sanitizer reports anything. */
export function runAddressTests(addon: string, tests: readonly string[], options: AddressOptions): Figures {
  const node = new SanitizedNode(addon, options);
  const results = `${node.reports}.json`;
  try {
    console.log(`sanitize: ${findPlanted(node)} planted faults were found; running ${tests.join(' ')}`);
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--reporter=default', '--reporter=json'];
    const { status } = node.run([...vitest, `--outputFile.json=${results}`, ...tests], 'inherit');
    const reports = node.takeReports();
    for (const report of reports) console.error(report);
    if (reports.length > 0) throw new Error(`The sanitizers wrote ${reports.length} reports.`);
    if (status !== 0) throw new Error(`The tests ended with ${status}.`);
    return figuresOf(JSON.parse(readFileSync(results, 'utf8')));
  } finally {
    rmSync(results, { force: true });
    node.remove();
  }
}
