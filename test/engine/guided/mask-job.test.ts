import { describe, expect, it } from 'vitest';
import { FollowedGuide } from '../../../engine/guided/followed-guide.js';
import { GuideBudgetError, MAX_FOLLOW_COST } from '../../../engine/guided/guide-budget.js';
import { wordsOfMask } from '../../../engine/guided/guide-messages.js';
import { MaskJob } from '../../../engine/guided/mask-job.js';
import { TokenTrie } from '../../../engine/guided/token-trie.js';
import { matcherOf } from './follow.js';

const TRIE = new TokenTrie(Array.from({ length: 128 }, (_, token) => Uint8Array.of(token)));
const A = 0x61;
const STEP = { step: 1, sequence: 0, position: 0, draft: Int32Array.of(), jumps: false };

/** A guide that a sequence has begun to follow at this cost. */
function guideAt(cost: number, regex = '[a-z]{8}'): FollowedGuide {
  const masks = new SharedArrayBuffer(4 * wordsOfMask(TRIE.vocabSize) * 3);
  const request = { first: 0, count: 1, endTokens: Int32Array.of(0), masks };
  const guide = new FollowedGuide(
    { type: 'open', guide: { type: 'regex', guide: regex }, ...request },
    'key',
    matcherOf('regex', regex),
    TRIE,
  );
  guide.moveTo(0, { ...guide.beginning(), cost });
  return guide;
}

function run(job: MaskJob): void {
  while (!job.goOn(1000)) {}
}

describe('a job that makes masks', () => {
  it('counts the places that an answer leads through', () => {
    const guide = guideAt(0, '(a|ab|abc)*[a-z]{8}');
    run(new MaskJob(guide, { ...STEP, tokens: Int32Array.of(A) }));
    const { cost } = guide.at(0);
    expect(cost).toBeGreaterThan(0);
    run(new MaskJob(guide, { ...STEP, position: 1, tokens: Int32Array.of(A) }));
    expect(guide.at(0).cost).toBeGreaterThan(cost);
  });

  it('fails an answer that leads through too many, and leaves a draft of such out', () => {
    const tokens = Int32Array.of(A);
    expect(() => run(new MaskJob(guideAt(MAX_FOLLOW_COST), { ...STEP, tokens }))).toThrow(GuideBudgetError);
    const guide = guideAt(MAX_FOLLOW_COST);
    run(new MaskJob(guide, { ...STEP, tokens: Int32Array.of(), draft: tokens }));
    expect(guide.at(0).numTokens).toBe(0);
  });

  it('knows the steps that were taken, for each byte by itself', () => {
    const { matcher } = guideAt(0, 'ax|by');
    expect(matcher.knows(matcher.start, A)).toBe(false);
    matcher.step(matcher.start, A);
    expect(matcher.knows(matcher.start, A)).toBe(true);
    expect(matcher.knows(matcher.start, A + 1)).toBe(false);
  });
});
