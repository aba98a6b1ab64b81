import { expect, it } from 'vitest';
import { KnownFiles } from '../../../../src/serving/pictures/known-files.js';

const file = (one: number) => Uint8Array.of(one, 7);
const factsOf = (one: number) => ({ digest: Uint8Array.of(one), width: one, height: 2, tiles: [one] });

function askers(max?: number) {
  const files = new KnownFiles(max);
  const reads: number[] = [];
  const ask = async (one: number, salt = 0n) => {
    const { facts, read } = await files.of(file(one), salt, async () => {
      reads.push(one);
      return factsOf(one);
    });
    return [facts.width, read?.tiles];
  };
  return { files, reads, ask };
}

it('reads a file once, keeps nothing of it but what its picture is, and shares it with none of another salt', async () => {
  const { files, reads, ask } = askers();
  expect(await ask(1)).toEqual([1, [1]]);
  expect(await ask(1)).toEqual([1, undefined]);
  expect(await ask(1, 5n)).toEqual([1, [1]]);
  expect(await ask(2)).toEqual([2, [2]]);
  expect(await ask(1, 5n)).toEqual([1, undefined]);
  expect(reads).toEqual([1, 1, 2]);
  expect(files.counts).toEqual({ read: 3, known: 2 });
  const { facts } = await files.of(file(1), 0n, () => Promise.reject(new Error('read')));
  expect(facts).toEqual({ digest: Uint8Array.of(1), width: 1, height: 2 });
});

it('knows the files that were used last, within its bound, and none that could not be read', async () => {
  const { files, reads, ask } = askers(2);
  for (const one of [1, 2, 1, 3, 1, 2]) await ask(one);
  expect(reads).toEqual([1, 2, 3, 2]);
  expect(files.size).toBe(2);
  const damaged = () => files.of(file(9), 0n, () => Promise.reject(new Error('damaged')));
  await expect(damaged()).rejects.toThrow('damaged');
  await expect(damaged()).rejects.toThrow('damaged');
  expect(files.size).toBe(2);
});
