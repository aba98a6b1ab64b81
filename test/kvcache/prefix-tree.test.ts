import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PrefixNode, PrefixTree } from '../../kvcache/prefix-tree.js';

const letters = (text: string) => Int32Array.from(text, (letter) => letter.charCodeAt(0));

/** A tree of blocks of 4 with the chains of these texts; blocks are numbered as they come. */
function treeOf(...texts: string[]): PrefixTree {
  const tree = new PrefixTree(4);
  let block = 0;
  for (const text of texts) {
    let node = tree.root({ salt: 0n });
    for (let start = 0; start + 4 <= text.length; start += 4) {
      const known = tree.child(node, letters(text), start);
      node = known ?? tree.insert(node, letters(text), start, block++, 35, Number.POSITIVE_INFINITY);
    }
  }
  return tree;
}

function found(tree: PrefixTree, text: string, limit = text.length): [number[], number | null, number] {
  const { nodes, partial, partialLength } = tree.match({ salt: 0n }, letters(text), limit);
  return [nodes.map(({ block }) => block), partial?.block ?? null, partialLength];
}

describe('a search', () => {
  // abcd 0, efgh 1, efxy 2, abzz 3
  const tree = treeOf('abcdefgh', 'abcdefxy', 'abzz');

  it.each<[string, [number[], number | null, number]]>([
    ['abcdefghij', [[0, 1], null, 0]],
    ['abcdefgh', [[0, 1], null, 0]],
    ['abcdefg', [[0], 1, 3]],
    ['abcdefgz', [[0], 1, 3]],
    ['abcdefx', [[0], 2, 3]],
    ['abcde', [[0], 1, 1]],
    ['abcd', [[0], null, 0]],
    ['abz', [[], 3, 3]],
    ['b', [[], null, 0]],
    ['', [[], null, 0]],
  ])('of %s', (text, expected) => {
    expect(found(tree, text)).toEqual(expected);
  });

  it('looks no further than its limit', () => {
    expect(found(tree, 'abcdefgh', 7)).toEqual([[0], 1, 3]);
    expect(found(tree, 'abcdefgh', 4)).toEqual([[0], null, 0]);
    expect(found(tree, 'abcdefgh', 3)).toEqual([[], 0, 3]);
    expect(found(tree, 'abcdefgh', 0)).toEqual([[], null, 0]);
  });
});

it('finds the longest common beginning of all children, however many', () => {
  const block = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(block, { minLength: 1, maxLength: 40 }), block, (texts, asked) => {
      const common = (text: string) =>
        [0, 1, 2, 3, 4].findLast((n) => text.slice(0, n) === asked.slice(0, n))!;
      const longest = Math.max(...texts.map(common));
      const tree = treeOf(...texts);
      const { nodes, partial, partialLength } = tree.match({ salt: 0n }, letters(asked), 4);
      expect(4 * nodes.length + partialLength).toBe(longest);
      if (partial) expect(common(String.fromCharCode(...tree.tokensOf(partial)))).toBe(partialLength);
    }),
  );
});

it('takes out leaves only, and forgets a salt with its last block', () => {
  const tree = new PrefixTree(4);
  const first = tree.insert(tree.root({ salt: 9n }), letters('abcd'), 0, 0, 35, Number.POSITIVE_INFINITY);
  const second: PrefixNode = tree.insert(first, letters('abcdefgh'), 4, 1, 35, Number.POSITIVE_INFINITY);
  expect(() => tree.remove(first)).toThrow('Block 0 is no leaf of the prefix tree');
  expect([...tree.roots]).toHaveLength(1);
  tree.remove(second);
  tree.remove(first);
  expect([...tree.roots]).toHaveLength(0);
});

it('gives hashes that depend on every token before, on the salt and on the adapter', () => {
  const name = (text: string, salt = 0n, loraId: bigint | null = null) =>
    new PrefixTree(4).firstMissing({ salt, loraId }, letters(text), text.length).hash;
  expect(name('abcd')).toBe(name('abcdzzzz'));
  expect(name('abc')).toBeNull();
  const names = new Set([
    name('abcd'),
    name('abce'),
    name('bbcd'),
    name('abcd', 1n),
    name('abcd', 2n ** 32n),
    name('abcd', 0n, 0n),
    name('abcd', 0n, 1n),
    name('abcd', 1n, 0n),
    name('abcd', 0n, 2n ** 32n),
  ]);
  const second = treeOf('abcd', 'bbcd');
  for (const text of ['abcdefgh', 'bbcdefgh'])
    names.add(second.firstMissing({ salt: 0n }, letters(text), 8).hash);
  expect(names.size).toBe(11);
  for (const value of names) expect(Number.isSafeInteger(value)).toBe(true);
});
