import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WindowLogits } from './divergence.js';

const SCRIPT = fileURLToPath(new URL('llama_library.py', import.meta.url));

/** llama.cpp's numbers of the mixtures of types that it makes. */
const LLAMA_FTYPES: Readonly<Record<string, number>> = {
  BF16: 32,
  Q8_0: 7,
  Q4_0: 2,
  Q4_1: 3,
  Q5_0: 8,
  Q5_1: 9,
  Q4_K_M: 15,
  Q5_K_M: 17,
  Q6_K: 18,
  IQ4_NL: 25,
  IQ4_XS: 30,
  // Of models without experts all matrices are Q8_0.
  MXFP4_MOE: 38,
};

/** llama.cpp's library in a folder: see llama_library.py. */
export class LlamaLibrary {
  readonly #libraries: string;
  readonly #python: string;

  constructor(libraries: string, python: string) {
    this.#libraries = libraries;
    this.#python = python;
  }

  quantize(source: string, target: string, type: string): void {
    const ftype = LLAMA_FTYPES[type];
    if (ftype === undefined)
      throw new Error(`type ${type} is not known, expected ${Object.keys(LLAMA_FTYPES).join(', ')}`);
    this.#run(['quantize', source, target, String(ftype)], '');
  }

  /** The logits of a file's model; `folder` holds them on the way. */
  logits(file: string, windows: readonly number[][], threads: number, folder: string): WindowLogits {
    const path = join(folder, 'llama.logits');
    try {
      this.#run(['logits', file, path, String(threads)], JSON.stringify(windows));
      return readLogits(path, windows);
    } finally {
      rmSync(path, { force: true });
    }
  }

  #run(args: readonly string[], input: string): void {
    const { status, stderr, error } = spawnSync(this.#python, [SCRIPT, this.#libraries, ...args], {
      input,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    // The library prints much on the way; the reason is at the end.
    if (error || status !== 0)
      throw new Error(
        `${SCRIPT} ${args.join(' ')}: ${error?.message ?? stderr.trim().split('\n').slice(-3).join('\n')}`,
      );
  }
}

function readLogits(path: string, windows: readonly number[][]): WindowLogits {
  const file = openSync(path, 'r');
  try {
    const rows = windows.reduce((sum, window) => sum + window.length - 1, 0);
    const width = widthOf(path, rows);
    return windows.map((window) =>
      window.slice(1).map(() => {
        const row = new Float32Array(width);
        readSync(file, row);
        return row;
      }),
    );
  } finally {
    closeSync(file);
  }
}

function widthOf(path: string, rows: number): number {
  const { size } = statSync(path);
  if (size % (4 * rows) !== 0) throw new Error(`${path}: ${size} bytes are no ${rows} rows of logits`);
  return size / (4 * rows);
}
