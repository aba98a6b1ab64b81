import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ConvertWeights,
  convertPortably,
  weightConverter,
} from '../../../engine/building/weight-converter.js';
import type { ConvertJob } from '../../../engine/directory/convert-job.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const folder = temporaryFolder('skein-converter');

const target = join(folder, 'target.bin');
/** Large enough that a signal comes in between. */
const values = Float32Array.from({ length: 2 ** 21 }, (_, i) => Math.sin(i));
const source = join(folder, 'source.bin');
writeFileSync(source, values);
const job: ConvertJob = {
  source,
  sourceOffset: 0,
  sourceByteLength: values.byteLength,
  type: 'F32',
  rows: 2 ** 11,
  columns: 2 ** 10,
  interleavedHeads: 0,
  targetOffset: 0,
  targetType: 'int4',
};

async function converted(convert: ConvertWeights, what = job, signal?: AbortSignal): Promise<Buffer> {
  writeFileSync(target, Buffer.alloc(((what.rows * what.columns) / 32) * 20));
  await convert(target, [what], { threads: 2, signal });
  return readFileSync(target);
}

describe('weights', () => {
  it('come out the same whether the addon converts them or TypeScript', async () => {
    const few = { ...job, rows: 2 ** 7, sourceByteLength: 4 * 2 ** 17 };
    expect((await converted(convertPortably, few)).equals(await converted(weightConverter(), few))).toBe(
      true,
    );
  });

  it('are given up within a moment of the signal', async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(new Error('enough')), 1);
    await expect(converted(convertPortably, job, abort.signal)).rejects.toThrow('enough');
    const rest = readFileSync(target).subarray(-20 * 32);
    expect(rest.every((byte) => byte === 0)).toBe(true);
  });
});
