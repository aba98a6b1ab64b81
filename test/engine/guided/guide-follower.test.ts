import { describe, expect, it } from 'vitest';
import type { Automaton } from '../../../engine/guided/automaton.js';
import { GuideFollower } from '../../../engine/guided/guide-follower.js';
import { type GuideReply, wordsOfMask } from '../../../engine/guided/guide-messages.js';
import { KeptMatchers, MAX_SETS_OF_GUIDE } from '../../../engine/guided/kept-matchers.js';
import { tokenMask } from '../../../engine/guided/token-mask.js';
import { TokenTrie } from '../../../engine/guided/token-trie.js';
import { Random } from '../../../tools/soak/random.js';
import { matcherOf } from './follow.js';

const random = new Random(11);
const BYTES_OF = Array.from({ length: 1200 }, (_, token) =>
  token < 128
    ? Uint8Array.of(token)
    : Uint8Array.from({ length: random.integer(2, 10) }, () => random.pick([0x61, 0x62, 0x79, 0x7a, 0x20])),
);
const TRIE = new TokenTrie(BYTES_OF);
const HOSTILE = '(.*[a-m].{1200}|.*[n-z].{1100})';

function newFollower() {
  const replies: GuideReply[] = [];
  const follower = new GuideFollower(TRIE, (reply) => replies.push(reply));
  const open = (first: number, guide: string, count = 1) => {
    const masks = new SharedArrayBuffer(4 * wordsOfMask(TRIE.vocabSize) * count);
    const endTokens = Int32Array.of(0);
    follower.handle({ type: 'open', first, count, guide: { type: 'regex', guide }, endTokens, masks });
    while (follower.hasWork) follower.work();
  };
  return { follower, replies, open };
}

describe('the follower', () => {
  it('answers a cheap sequence in a few turns, however many costly ones were asked for before', () => {
    const { follower, replies, open } = newFollower();
    const letters = [...'azbyazbyazbyazby'].map((letter) => letter.charCodeAt(0));
    open(0, HOSTILE, 8);
    open(8, '[a-z ]{500}');
    replies.length = 0;
    for (let i = 0; i < 8; i++) {
      // Each stands somewhere else.
      const tokens = letters.slice(i);
      follower.handle({
        type: 'mask',
        step: 1,
        entries: Int32Array.of(i, 0, tokens.length, 0, 0, ...tokens),
      });
    }
    follower.handle({ type: 'mask', step: 1, entries: Int32Array.of(8, 0, 1, 0, 0, 0x61) });
    const isDone = (sequence: number) =>
      replies.some(
        (reply) =>
          reply.type === 'masked' && reply.done.some((value, k) => k % 2 === 1 && value === sequence),
      );
    let turns = 0;
    for (; !isDone(8); turns++) follower.work();
    expect(turns).toBeLessThan(8);
    expect(isDone(7)).toBe(false);
    while (follower.hasWork) follower.work();
    expect([0, 1, 2, 3, 4, 5, 6, 7].every(isDone)).toBe(true);
  });

  it('allows no token in any row behind the first token of a draft that does not follow the guide', () => {
    const { follower, replies } = newFollower();
    const words = wordsOfMask(TRIE.vocabSize);
    const masks = new SharedArrayBuffer(4 * words * 5);
    const guide = { type: 'regex' as const, guide: '[a-z]{8}' };
    const rows = new Uint32Array(masks).fill(0xffffffff);
    follower.handle({ type: 'open', first: 0, count: 1, guide, endTokens: Int32Array.of(0), masks });
    while (follower.hasWork) follower.work();
    const draft = [...'b1cd'].map((letter) => letter.charCodeAt(0));
    const entries = Int32Array.of(0, 0, 1, draft.length, 0, 0x61, ...draft);
    follower.handle({ type: 'mask', step: 1, entries });
    while (follower.hasWork) follower.work();
    expect(replies.at(-1)).toMatchObject({ type: 'masked', failures: [] });
    const isEmpty = (row: number) =>
      rows.subarray(row * words, (row + 1) * words).every((word) => word === 0);
    expect([0, 1, 2, 3, 4].map(isEmpty)).toEqual([false, false, true, true, true]);
  });

  it('tells a client of its guide, and never of a fault of its own', () => {
    const replies: GuideReply[] = [];
    const keys: string[] = [];
    const follower = new GuideFollower(
      TRIE,
      (reply) => replies.push(reply),
      ({ key }) => keys.push(key),
    );
    const open = (first: number, guide: string) => {
      const masks = new SharedArrayBuffer(4 * wordsOfMask(TRIE.vocabSize));
      const endTokens = Int32Array.of(0);
      follower.handle({ type: 'open', first, count: 1, guide: { type: 'regex', guide }, endTokens, masks });
      return keys.at(-1)!;
    };
    follower.take({ key: open(0, 'a('), automaton: null, error: 'A bracket is open.', isInvalid: true });
    expect(replies).toEqual([{ type: 'opened', first: 0, error: 'A bracket is open.', isInvalid: true }]);
    const broken = {} as Automaton;
    const key = open(1, 'a');
    expect(() => follower.take({ key, automaton: broken, error: '', isInvalid: false })).toThrow(TypeError);
    expect(replies).toHaveLength(1);
  });

  it('forgets what a request that leaves has asked for', () => {
    const { follower, replies, open } = newFollower();
    open(0, HOSTILE);
    replies.length = 0;
    follower.handle({ type: 'mask', step: 1, entries: Int32Array.of(0, 0, 3, 0, 0, 0x61, 0x7a, 0x62) });
    follower.handle({ type: 'close', first: 0, count: 1 });
    expect(follower.hasWork).toBe(false);
    expect(replies).toEqual([]);
  });

  it('makes no masks for the sequences of a request that has left', () => {
    const { follower, replies, open } = newFollower();
    open(3, '[a-z]{8}', 2);
    replies.length = 0;
    follower.handle({ type: 'close', first: 3, count: 2 });
    const asked = [3, 4].flatMap((sequence) => [sequence, 0, 1, 0, 0, 0x61]);
    follower.handle({ type: 'mask', step: 1, entries: Int32Array.from(asked) });
    while (follower.hasWork) follower.work();
    expect(replies).toEqual([]);
  });

  it('keeps of a guide no more than its bytes, however far it is followed', () => {
    const { follower, open } = newFollower();
    open(0, '(.*[a-m].{1200}|.*[n-z].{1100})', 4);
    const tokens = [...'azbyazbyazbyaz'].map((letter) => letter.charCodeAt(0));
    let forgets = 0;
    let before = 0;
    for (let step = 1; step <= tokens.length; step++) {
      for (let i = 0; i < 4; i++) {
        const own = tokens.slice(0, step).map((token) => token ^ i);
        follower.handle({ type: 'mask', step, entries: Int32Array.of(i, 0, step, 0, 0, ...own) });
        while (follower.hasWork) follower.work();
        if (follower.size < before) forgets++;
        before = follower.size;
        // The bound is the size before a mask and the most that one mask adds.
        expect(follower.size).toBeLessThan(3 * MAX_SETS_OF_GUIDE);
      }
    }
    expect(forgets).toBeGreaterThan(0);
  });
});

describe('matchers that are kept', () => {
  const walked = (guide: string) => {
    const matcher = matcherOf('regex', guide);
    for (const text of ['', 'a', 'az', 'azb'])
      tokenMask(matcher, TRIE, matcher.follow(matcher.start, Buffer.from(text))!);
    return matcher;
  };

  it('stay within their bytes: what nobody follows goes, what is followed forgets and finds it again', () => {
    const one = walked('[a-z ]{1,900}').sizeOfSets;
    const kept = new KeptMatchers(3 * one);
    const matchers = Array.from({ length: 12 }, (_, i) => walked(`[a-z ]{1,${900 + i}}`));
    for (const [i, matcher] of matchers.entries()) {
      kept.add(`${i}`, matcher);
      if (i % 2 === 0) kept.release(`${i}`);
    }
    expect(kept.size).toBeGreaterThan(3 * one);
    kept.trim();
    expect(kept.size).toBeLessThanOrEqual(3 * one);
    expect(kept.take('0')).toBeNull();
    const followed = kept.take('1')!;
    expect(followed).toBe(matchers[1]);
    expect(tokenMask(followed, TRIE, followed.start)).toEqual(
      tokenMask(matchers[11]!, TRIE, matchers[11]!.start),
    );
  });
});
