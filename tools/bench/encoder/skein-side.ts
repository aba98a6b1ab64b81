import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Encoder as EncoderClass } from '../../../src/library/encoder.js';
import { compiled } from '../compiled.js';
import type { OpenSide, Precision, Side } from './side.js';

/** Skein's Encoder with its default limits. */
export function skeinSide(precision: Precision, threads: number): Side {
  return {
    name: `Skein ${precision}`,
    precision,
    isSkein: true,
    open: (folder) => openEncoder(folder, precision, threads),
  };
}

async function openEncoder(folder: string, precision: Precision, threads: number): Promise<OpenSide> {
  const { Encoder } = await compiled<{ Encoder: typeof EncoderClass }>('src/index.js');
  const cacheDir = mkdtempSync(join(tmpdir(), 'skein-encoder-bench-'));
  const remove = () => rmSync(cacheDir, { recursive: true, force: true });
  process.once('exit', remove);
  const encoder = await Encoder.load({ model: folder, weights: precision, threads, cacheDir });
  return {
    version: 'Skein',
    async embed(calls) {
      let first: number[] = [];
      const startMs = performance.now();
      for (const texts of calls) {
        const rows = await encoder.embed(texts);
        if (first.length === 0) first = [...rows[0]!];
      }
      return { seconds: (performance.now() - startMs) / 1000, first };
    },
    async close() {
      await encoder.close();
      remove();
    },
  };
}
