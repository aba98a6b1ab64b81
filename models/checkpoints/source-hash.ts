import { createHash } from 'node:crypto';
import { fstatSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import { withFile } from './file-reading.js';
import { allModelFiles, type ModelFiles } from './model-files.js';

const HEAD_BYTES = 64 * 1024;
const SAMPLE_BYTES = 4096;
const NUM_SAMPLES = 16;

/**
 * Hash that changes with the model: of the name, size, modification time, first 64 KiB and sixteen samples of each
 * file. It is cheap enough for every start; the samples tell apart fine-tunes whose names, sizes and times agree, as in
 * images with fixed times.
 */
export function sourceHash(files: ModelFiles): string {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(HEAD_BYTES);
  for (const file of allModelFiles(files)) {
    withFile(file, (fd, size) => {
      hash.update(`${basename(file)}\0${size}\0${fstatSync(fd).mtimeMs}\0`);
      hash.update(buffer.subarray(0, readSync(fd, buffer, 0, HEAD_BYTES, 0)));
      for (let i = 1; size > HEAD_BYTES && i <= NUM_SAMPLES; i++) {
        const offset = Math.floor(((size - SAMPLE_BYTES) * i) / NUM_SAMPLES);
        hash.update(buffer.subarray(0, readSync(fd, buffer, 0, SAMPLE_BYTES, offset)));
      }
    });
  }
  return hash.digest('hex');
}
