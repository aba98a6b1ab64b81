import { describe, expect, it } from 'vitest';
import { PatchMemory } from '../../../../src/serving/pictures/patch-memory.js';

describe('memory of patches', () => {
  it('is one block, in whose gaps pictures lie', async () => {
    const memory = new PatchMemory(64, 10);
    const [a, b, c] = await Promise.all([memory.take(16), memory.take(24), memory.take(24)]);
    const places = [a!, b!, c!].map(({ floats }) => [floats.byteOffset, floats.byteLength]);
    expect(places).toEqual([
      [0, 16],
      [16, 24],
      [40, 24],
    ]);
    b!.giveBack();
    b!.giveBack();
    const [d, e] = [await memory.take(8), await memory.take(16)];
    expect([d, e].map(({ floats }) => floats.byteOffset)).toEqual([16, 24]);
    for (const { floats } of [b!, c!, d, e]) expect(floats.buffer).toBe(a!.floats.buffer);
  });

  it('lets those wait that find no room, in their order, and one that is larger than all for all of it', async () => {
    const memory = new PatchMemory(64, 3);
    const [a, b] = [await memory.take(32), await memory.take(32)];
    const order: string[] = [];
    const asked = (name: string, bytes: number) =>
      memory.take(bytes).then((place) => {
        order.push(name);
        return place;
      });
    const [large, small, last] = [asked('large', 96), asked('small', 8), asked('last', 8)];
    await expect(memory.take(8)).rejects.toThrow('Too many pictures are waiting');
    a.giveBack();
    await Promise.resolve();
    expect(order).toEqual([]);
    b.giveBack();
    const alone = await large;
    expect([alone.floats.byteLength, alone.floats.buffer === a.floats.buffer]).toEqual([96, false]);
    expect(order).toEqual(['large']);
    alone.giveBack();
    expect([(await small).floats.byteOffset, (await last).floats.byteOffset]).toEqual([0, 8]);
  });
});
