import { describe, expect, it } from 'vitest';
import { forcedBehind, MAX_FORCED_TOKENS } from '../../../engine/guided/forced-tokens.js';
import { TokenTrie } from '../../../engine/guided/token-trie.js';
import { matcherOf } from './follow.js';

const TOKENS = [...'abcdefghijklmnopqrstuvwxyz0123456789-":{}', 'name', 'na', '":', '{"', '":"', 'ab', 'abc'];
const trie = new TokenTrie(TOKENS.map((token) => Buffer.from(token)));

/** By the token that may follow the text: the tokens that then have to follow. */
function behind(regex: string, text = ''): Record<string, string[]> {
  const matcher = matcherOf('regex', regex);
  const entries = forcedBehind(matcher, trie, matcher.follow(matcher.start, Buffer.from(text))!);
  const found: Record<string, string[]> = {};
  for (let i = 0; i < entries.length; i += 2 + entries[i + 1]!) {
    const forced = entries.subarray(i + 2, i + 2 + entries[i + 1]!);
    found[TOKENS[entries[i]!]!] = Array.from(forced, (token) => TOKENS[token]!);
  }
  return found;
}

describe('what has to follow each token that may come next', () => {
  it('is cut into the longest tokens', () => {
    expect(behind('\\{"name":1')).toEqual({ '{': ['"', 'name', '":', '1'], '{"': ['name', '":', '1'] });
  });

  it('is nothing behind a place with several ways, and goes up to the next one', () => {
    expect(behind('x(abd|zname)-[01]')).toEqual({});
    expect(behind('x(abd|zname)-[01]', 'x')).toEqual({
      a: ['b', 'd', '-'],
      ab: ['d', '-'],
      z: ['name', '-'],
    });
  });

  it('leaves out a last token that could be longer', () => {
    expect(behind('xyna(me|b)')).toEqual({ x: ['y'] });
    // Not `":` where a quote may follow; where none may, it is certain.
    expect(behind('xy":["1]')).toEqual({ x: ['y'] });
    expect(behind('xy":[12]')).toEqual({ x: ['y', '":'] });
  });

  it('ends where the text may end', () => {
    expect(behind('xab(-cd)?')).toEqual({ x: ['ab'] });
  });

  it('is bounded', () => {
    expect(behind('x(-1){99}').x).toHaveLength(MAX_FORCED_TOKENS);
  });

  it('is not asked for where very many tokens may come next', () => {
    expect(behind('[a-z0-9]name')).toEqual({});
  });
});
