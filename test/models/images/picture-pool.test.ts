import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import type * as BudgetModule from '../../../models/images/byte-budget.js';
import { pictureDigest } from '../../../models/images/picture-identity.js';
import type * as PoolModule from '../../../models/images/picture-pool.js';
import { picturePreprocessor } from '../../../models/images/preprocess/index.js';
import { golden, hostilePictures } from '../../support/hostile-pictures.js';
import { runMutations } from '../../support/mutation-run.js';
import { digest } from '../../support/picture-goldens.js';

const compiled = (name: string) => new URL(`../../../dist/models/images/${name}.js`, import.meta.url).href;
const { ByteBudget }: typeof BudgetModule = await import(compiled('byte-budget'));
const { PicturePool }: typeof PoolModule = await import(compiled('picture-pool'));

const files = {
  imageProcessor: { image_processor_type: 'SiglipImageProcessor', size: { height: 28, width: 28 } },
  processor: {},
  config: { patch_size: 14 },
  tokenizer: {},
};
const MEMORY = 4e8;
const memory = new ByteBudget(MEMORY);
const pool = new PicturePool(files, { memory });
afterAll(() => pool.close());

const sizeOf = async (bytes: Uint8Array) => {
  const prepared = await pool.prepare([bytes]);
  return prepared.flatMap(({ width, height }) => [width, height]);
};

/** Runs work of which the first processes are killed as they start. */
async function withKills<T>(count: number, work: () => Promise<T>): Promise<T> {
  const { fork } = childProcess;
  let left = count;
  childProcess.fork = ((...given: Parameters<typeof fork>) => {
    const child = fork(...given);
    if (left-- > 0) child.kill('SIGKILL');
    return child;
  }) as typeof fork;
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    childProcess.fork = fork;
    syncBuiltinESMExports();
  }
}

describe('a pool for pictures', () => {
  it('prepares the pictures of a request, turned upright, with the digests of their pixels', async () => {
    const [upright, turned, same] = await pool.prepare(
      ['png rgb', 'png exif 6', 'webp lossless'].map(golden),
    );
    expect([upright!.width, upright!.height]).toEqual([29, 19]);
    expect([turned!.width, turned!.height]).toEqual([19, 29]);
    const { settings } = picturePreprocessor(files);
    const own = pictureDigest({ width: 2, height: 1, bytes: new Uint8Array(6) }, settings);
    expect(own.length).toBe(upright!.digest.length);
    // A picture is known by its pixels, not by its file.
    expect(digest(same!.digest)).toBe(digest(upright!.digest));
    expect(digest(turned!.digest)).not.toBe(digest(upright!.digest));
    expect(upright!.tiles.map(({ width, height }) => [width, height])).toEqual([[28, 28]]);
    expect(pool.preprocessor.patches(upright!.tiles)).toHaveLength(4 * 588);
  });

  it.each(hostilePictures())('answers with a picture or one sentence: $name', async ({ bytes, becomes }) => {
    const answer = await sizeOf(bytes).catch((error: Error) => error);
    if (becomes instanceof RegExp) {
      const { name, message } = answer as Error;
      expect(message ?? (answer as number[]).join(' ')).toMatch(becomes);
      expect(message ?? '').toMatch(/^[^\n]*$/);
      expect(name ?? 'PictureError').toBe('PictureError');
    } else expect(answer).toEqual(becomes);
  });

  it.each(['jpeg', 'png', 'webp', 'gif'])('copes with a few mutated files: %s', async (kind) => {
    const { pictures, refused, wrong } = await runMutations(pool, kind, 40);
    expect(wrong).toEqual([]);
    expect(pictures).toBeGreaterThan(0);
    expect(refused).toBeGreaterThan(0);
  });

  it('refuses too many pictures, and too many bytes of them', async () => {
    const small = golden('gif part');
    await expect(pool.prepare(Array(17).fill(small))).rejects.toThrow(
      'The request has 17 pictures, and may have 16.',
    );
    await expect(pool.prepare([new Uint8Array(12_000_001)])).rejects.toThrow(/have 12000001 bytes together/);
  });

  it('tries a picture once more whose process ends, and fails it alone where that ends again', async () => {
    const once = new PicturePool(files);
    const [picture] = await withKills(1, () => once.prepare([golden('png rgb')]));
    expect(picture).toMatchObject({ width: 29, height: 19 });
    expect(once.processes).toBe(2);
    await once.close();

    const twice = new PicturePool(files);
    // The first picture, the second one, and the first one again, which waited for its turn.
    const [lost, next] = await withKills(3, () =>
      Promise.allSettled([twice.prepare([golden('png rgb')]), twice.prepare([golden('png exif 6')])]),
    );
    expect(lost).toMatchObject({
      reason: {
        name: 'PictureDecoderError',
        message: 'The picture was not decoded: A helper process ended: exit code SIGKILL.',
      },
    });
    expect(next).toMatchObject({ value: [{ width: 19, height: 29 }] });
    expect(twice.processes).toBe(4);
    await twice.close();
  });

  it('takes memory before it decodes, and gives all of it back', async () => {
    expect(memory.taken).toBe(0);
    const small = new PicturePool(files, { memory: new ByteBudget(1000) });
    await expect(small.prepare([golden('png rgb')])).rejects.toThrow(
      /^The picture takes \d+ bytes while it is prepared, and pictures may take 1000 together\.$/,
    );
    await small.close();
  });

  it('does not wait for a picture whose request is gone', async () => {
    const giveBack = await memory.take(MEMORY);
    const gone = new AbortController();
    const waiting = pool.prepare([golden('png rgb')], gone.signal);
    gone.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    giveBack();
    expect(await sizeOf(golden('png rgb'))).toEqual([29, 19]);
    await expect(pool.prepare([golden('png rgb')], gone.signal)).rejects.toThrow('gone');
    expect(memory.taken).toBe(0);
  });
});

describe('a budget of bytes', () => {
  it('lets who waits go first, in order, and no more than there are', async () => {
    const budget = new ByteBudget(10);
    const first = await budget.take(6);
    const order: number[] = [];
    const large = budget.take(8).then((giveBack) => {
      order.push(8);
      return giveBack;
    });
    const little = budget.take(1).then((giveBack) => {
      order.push(1);
      return giveBack;
    });
    expect(budget.taken).toBe(6);
    first();
    first();
    const [ofLarge, ofLittle] = await Promise.all([large, little]);
    expect([order, budget.taken]).toEqual([[8, 1], 9]);
    ofLarge();
    ofLittle();
    expect(budget.taken).toBe(0);
  });

  it('refuses who would wait too long', async () => {
    const budget = new ByteBudget(1);
    const giveBack = await budget.take(1);
    const waiting = Array.from({ length: 256 }, () => budget.take(1));
    await expect(budget.take(1)).rejects.toThrow('Too many pictures are waiting; try again later.');
    giveBack();
    for (const one of waiting) (await one)();
    expect(budget.taken).toBe(0);
  });
});
