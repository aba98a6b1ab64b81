import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The wall clock of a program of Node.js, which can be set while it runs: `skewed-date.mjs` reads the file in the program. */
export class SkewedClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'skein-clock-'));
  readonly #file = join(this.#folder, 'skew-ms');

  constructor() {
    this.skew(0);
  }

  /** Environment of the program. */
  get environment(): Record<string, string> {
    return {
      FAULTS_CLOCK_FILE: this.#file,
      NODE_OPTIONS: `--import ${new URL('skewed-date.mjs', import.meta.url).href}`,
    };
  }

  /** @param ms what the clock is ahead of the right time */
  skew(ms: number): void {
    // As one step: the program may read meanwhile.
    writeFileSync(`${this.#file}.new`, String(ms));
    renameSync(`${this.#file}.new`, this.#file);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
