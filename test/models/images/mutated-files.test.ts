import { existsSync, readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type * as PoolModule from '../../../models/images/picture-pool.js';
import { runMutations } from '../../support/mutation-run.js';
import { draws } from '../../support/scale.js';

const compiled = new URL('../../../dist/models/images/picture-pool.js', import.meta.url).href;
const { PicturePool }: typeof PoolModule = await import(compiled);

const pool = new PicturePool({
  imageProcessor: { image_processor_type: 'SiglipImageProcessor', size: { height: 28, width: 28 } },
  processor: {},
  config: { patch_size: 14 },
  tokenizer: {},
});
afterAll(() => pool.close());

/** Bytes of memory of the largest process of this one, by a field of its status; null where the system does not say. */
function largestChild(field: 'VmHWM' | 'VmRSS'): number | null {
  const list = `/proc/self/task/${process.pid}/children`;
  if (!existsSync(list)) return null;
  const sizes = readFileSync(list, 'utf8')
    .trim()
    .split(' ')
    .map(
      (pid) => new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    );
  return Math.max(...sizes.map((size) => Number(size ?? 0) * 1024));
}

const resident: (number | null)[] = [];

describe('2000 mutated files of each kind', () => {
  it.each(['jpeg', 'png', 'webp', 'gif'])('become a picture or one sentence: %s', async (kind) => {
    const { pictures, refused, wrong } = await runMutations(pool, kind, draws(2000));
    expect(wrong).toEqual([]);
    expect(pictures).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
    // Within the budget of a pool, and what Node.js itself takes.
    expect(largestChild('VmHWM') ?? 0).toBeLessThan(2 ** 29 + 2 ** 28);
    resident.push(largestChild('VmRSS'));
  });

  it('end no process, and leave nothing in its memory', () => {
    expect(pool.processes).toBe(1);
    const [first, last] = [resident[0] ?? 0, resident.at(-1) ?? 0];
    // What thousands of files would leave, each a small part of the smallest file here; the collector takes its time.
    expect(last - first).toBeLessThan(2 ** 26);
  });
});
