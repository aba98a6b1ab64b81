import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { TowerPicture } from '../../../../callbacks/tower-messages.js';
import { PictureError } from '../../../../models/images/picture-error.js';
import type { PicturePool } from '../../../../models/images/picture-pool.js';
import type { PicturePlan } from '../../../../models/images/preprocess/picture-preprocessor.js';
import { KeptRows } from '../../../../src/serving/pictures/kept-rows.js';
import { ModelSight } from '../../../../src/serving/pictures/model-sight.js';
import { PictureReader } from '../../../../src/serving/pictures/picture-reader.js';

const rowsOf = (count: number, value = 0) => new Float32Array(count).fill(value);

describe('kept rows', () => {
  it('are made once, also for two who ask at a time, and those used last stay within the bytes', async () => {
    const kept = new KeptRows(100);
    const made: string[] = [];
    const ask = (key: string, count: number) =>
      kept.of(key, async () => {
        made.push(key);
        return rowsOf(count);
      });
    const [one, same] = await Promise.all([ask('a', 10), ask('a', 10)]);
    expect(same).toBe(one);
    await ask('b', 10);
    await ask('a', 10);
    await ask('c', 10);
    expect(kept.bytes).toBe(80);
    await ask('a', 10);
    await ask('b', 10);
    expect(made).toEqual(['a', 'b', 'c', 'b']);
    // Larger than all that may be kept: the answer is given, and nothing stays.
    expect((await ask('d', 50)).length).toBe(50);
    expect(kept.bytes).toBe(0);
  });

  it('are not kept where they could not be made', async () => {
    const kept = new KeptRows(100);
    await expect(kept.of('a', () => Promise.reject(new Error('lost')))).rejects.toThrow('lost');
    expect((await kept.of('a', async () => rowsOf(1, 7)))[0]).toBe(7);
  });
});

/** A pool whose pictures become this plan; files name their content. */
function poolOf(plan: Pick<PicturePlan, 'prompt' | 'grids'>): PicturePool {
  let made = 0;
  const whole = { ...plan, rowWidth: 2, tiles: [], pixels: 0, bytes: 0 };
  return {
    look: (file: Uint8Array) => {
      if (file[0] === 255) throw new PictureError('The file is no picture.');
      return whole;
    },
    preprocessor: {
      plan: () => whole,
      patchesInTurns: async (_: unknown, rows: Float32Array) => {
        for (let i = 0; i < rows.length; i++) rows[i] = made++;
      },
    },
    prepare: async ([file]: Uint8Array[]) => {
      if (file![0] === 0) throw new PictureError('The PNG picture is damaged.');
      return [{ width: 8, height: 8, digest: Uint8Array.of(file![0]!), tiles: [] }];
    },
  } as unknown as PicturePool;
}

/** @param rowsOf what the tower makes of patches */
function sightOf(
  plan: Pick<PicturePlan, 'prompt' | 'grids'>,
  rowsOf = (patches: Float32Array) => patches.map((x) => -x),
) {
  const seen: (readonly TowerPicture[])[] = [];
  let [inTower, most] = [0, 0];
  const sight = new ModelSight({
    reader: new PictureReader({
      pool: poolOf(plan),
      towerDigest: 'tower',
      vocabSize: 1000,
      placeholder: '<image>',
      tokenId: 9,
      tokenText: '<image>',
    }),
    tower: () => ({
      see: async (pictures) => {
        seen.push(pictures);
        most = Math.max(most, ++inTower);
        await nextTurn();
        inTower--;
        return pictures.map(({ patches }) => rowsOf(patches));
      },
    }),
    rowBytes: 8,
    maxKeptBytes: 1e6,
  });
  return { sight, seen, atATime: () => most };
}

describe('a sight', () => {
  it('makes a picture whose rows are merged patches a grid, and sees it once', async () => {
    const { sight, seen } = sightOf({ prompt: [6], grids: [{ rows: 4, columns: 6 }] });
    const looked = sight.look(Uint8Array.of(1), 'messages[0]');
    expect(looked).toMatchObject({ text: '<image>'.repeat(6), grids: [{ rows: 2, columns: 3 }] });
    const picture = await looked.decode(undefined);
    expect(picture.ids).toHaveLength(6);
    expect(Math.min(...picture.ids)).toBeGreaterThanOrEqual(1000);
    const again = await sight.look(Uint8Array.of(1), 'messages[2]').decode(undefined);
    const other = await sight.look(Uint8Array.of(2), 'messages[2]').decode(undefined);
    expect(again.ids).toEqual(picture.ids);
    expect(other.ids).not.toEqual(picture.ids);
    expect(await again.rows()).toBe(await picture.rows());
    await other.rows();
    // Of another salt it is seen once more.
    const ofSalt = async () => (await looked.decode(undefined, 5n)).rows();
    const salted = await ofSalt();
    expect(salted).not.toBe(await picture.rows());
    expect(await ofSalt()).toBe(salted);
    expect(sight.counts).toEqual({ rows: { made: 3, kept: 3 }, files: { read: 3, known: 2 } });
    expect(seen.map((pictures) => pictures[0]!.grid)).toEqual([
      { rows: 4, columns: 6 },
      { rows: 4, columns: 6 },
      { rows: 4, columns: 6 },
    ]);
  });

  it('makes tiles with texts between them runs, and joins their rows', async () => {
    const grids = [
      { rows: 2, columns: 2 },
      { rows: 2, columns: 2 },
    ];
    const { sight, seen } = sightOf({ prompt: ['<a>', 4, '<b>', 4, '<c>'], grids });
    const picture = sight.look(Uint8Array.of(1), 'messages[0]');
    expect(picture.text).toBe(`<a>${'<image>'.repeat(4)}<b>${'<image>'.repeat(4)}<c>`);
    expect(picture.grids).toEqual([
      { rows: 1, columns: 4 },
      { rows: 1, columns: 4 },
    ]);
    const { rows } = await picture.decode(undefined);
    expect([...(await rows())]).toEqual(Array.from({ length: 16 }, (_, i) => -i));
    expect(seen[0]!.map(({ patches }) => patches.length)).toEqual([8, 8]);
  });

  it('has no more patches at a time than a bound, and its tower sees pictures in order', async () => {
    // Two numbers of a patch in four bytes each: two of these pictures are within the bound.
    const side = 2048;
    const { sight, seen, atATime } = sightOf(
      { prompt: [1], grids: [{ rows: side, columns: (3 * side) / 2 }] },
      () => new Float32Array(1),
    );
    const pictures = [1, 2, 3, 4, 5].map((one) => sight.look(Uint8Array.of(one), 'messages[0]'));
    const decoded = await Promise.all(pictures.map((picture) => picture.decode(undefined)));
    const waiting = decoded.map((picture) => picture.rows());
    const rows = await Promise.all(waiting);
    expect(rows.map(({ length }) => length)).toEqual(Array(5).fill(1));
    expect([seen.length, atATime()]).toEqual([5, 2]);
    expect(pictures[0]!.bytes).toBe(2 * 8);
  });

  it('refuses a damaged file by the place where it stands', async () => {
    const { sight } = sightOf({ prompt: [1], grids: [{ rows: 1, columns: 1 }] });
    const place = 'messages[1].content[2]';
    const damaged = sight.look(Uint8Array.of(0), place);
    const message = `${place}: The PNG picture is damaged.`;
    await expect(damaged.decode(undefined)).rejects.toMatchObject({ message, param: place });
    expect(() => sight.look(Uint8Array.of(255), place)).toThrow(`${place}: The file is no picture.`);
  });
});
