import { describe, expect, it } from 'vitest';
import { chainHash, promptHashes, rootHash } from '../../kvcache/block-hashes.js';

const tokens = Int32Array.from({ length: 9 }, (_, i) => i * i);
const key = { salt: 0n };
const HASHES = {
  root: 3041441565002241,
  plain: [3685697946343825, 7839275016114509],
  keyed: [3923460705446471, 2800807244651417],
};

describe('hashes of the full blocks of a prompt', () => {
  it.each([
    [0, 0],
    [4, 0],
    [5, 1],
    [8, 1],
    [9, 2],
  ])('leave the last of %i tokens out: %i of 4 tokens each', (length, count) => {
    const hashes = promptHashes(key, tokens.subarray(0, length), 4);
    expect(hashes).toHaveLength(count);
    expect(hashes).toEqual(promptHashes(key, tokens, 4).slice(0, count));
  });

  it('are the same in every version, since processes tell each other of them', () => {
    expect(rootHash(key)).toBe(HASHES.root);
    expect(promptHashes(key, tokens, 4)).toEqual(HASHES.plain);
    expect(promptHashes({ salt: -5n, loraId: 2n ** 40n }, tokens, 4)).toEqual(HASHES.keyed);
  });

  it('follow from the parent and the tokens of a block, wherever these lie', () => {
    const [first, second] = promptHashes(key, tokens, 4);
    expect(chainHash(rootHash(key), tokens, 0, 4)).toBe(first);
    expect(chainHash(first!, [...tokens].slice(4), 0, 4)).toBe(second);
    expect(Number.isSafeInteger(second)).toBe(true);
  });
});
