import { setImmediate } from 'node:timers/promises';
import zlib from 'node:zlib';
import { messageOf } from '../../base/error-text.js';
import type { ConvertJob } from '../directory/convert-job.js';
import { loadAddon, nativeAddonAvailable } from './native/load-addon.js';

/** Rows that are summed up before the event loop has its turn, roughly, in bytes. */
const STEP_BYTES = 4 << 20;

/**
 * CRC-32 of a tensor that lies in the model's file, of the bytes that weights.bin would have.
 *
 * @throws Error that names the file if it cannot be read
 */
export async function sourceChecksum(jobs: readonly ConvertJob[], threads: number): Promise<number> {
  if (nativeAddonAvailable()) {
    const sum = loadAddon().rowsChecksum([...jobs], threads);
    await setImmediate();
    return sum;
  }
  const { SourceRows } = await import('./portable/convert/source-rows.js');
  const rows = new SourceRows(jobs);
  try {
    const atOnce = Math.max(1, Math.floor(STEP_BYTES / rows.rowBytes));
    let sum = 0;
    for (let first = 0; first < rows.rows; first += atOnce) {
      sum = zlib.crc32(rows.read(first, Math.min(atOnce, rows.rows - first)), sum);
      await setImmediate();
    }
    return sum;
  } finally {
    rows.close();
  }
}

/** What an error about the model's file means for its engine. */
export const withSourceHint = (error: unknown, directory: string) =>
  `${messageOf(error)} Matrices of the engine of ${directory} lie in this file: put it back as it was, or start with the model where it is now.`;
