import { describe, expect, it } from 'vitest';
import { encodeWordList } from '../../callbacks/stop-words.js';
import { f32, i32, LoopHarness, makeRequest, runAlone, u64 } from '../../tools/support/loop-harness.js';

const PROMPT = [3, 1, 4, 1, 5];

describe('stop conditions', () => {
  const { tokens } = runAlone(makeRequest(1n, PROMPT, 20));

  it('end at end_id, which is not part of the output', () => {
    const endId = tokens[4]!;
    const expected = tokens.slice(0, tokens.indexOf(endId));
    const result = runAlone(makeRequest(1n, PROMPT, 20, { end_id: i32(endId) }));
    expect(result).toMatchObject({ tokens: expected, finishReason: 1 });
    expect(result.sequenceLength).toBe(PROMPT.length + expected.length);
  });

  it('end after a stop word of several tokens, which is part of the output', () => {
    const word = tokens.slice(3, 6);
    const words = encodeWordList([[98, 99], word]);
    expect(runAlone(makeRequest(1n, PROMPT, 20, { stop_words_list: words }))).toMatchObject({
      tokens: tokens.slice(0, 6),
      finishReason: 2,
    });
  });

  it('take a stop word only from generated tokens, never across the end of the prompt', () => {
    const across = encodeWordList([[PROMPT.at(-1)!, tokens[0]!]]);
    const result = runAlone(makeRequest(1n, PROMPT, 20, { stop_words_list: across }));
    expect(result).toMatchObject({ tokens, finishReason: 3 });
  });

  it('are not evaluated below min_length where they are words of several tokens', () => {
    const words = encodeWordList([tokens.slice(1, 3)]);
    const run = (minLength: number) =>
      runAlone(makeRequest(1n, PROMPT, 20, { stop_words_list: words, min_length: i32(minLength) }));
    expect(run(3)).toMatchObject({ tokens: tokens.slice(0, 3), finishReason: 2 });
    expect(run(4)).toMatchObject({ tokens, finishReason: 3 });
  });

  it('below min_length no token is drawn that would end the request: end_id and every one-token stop word', () => {
    // 96 of 100 tokens end the request: whatever is free of bans ends it at once.
    const ends = Array.from({ length: 96 }, (_, token) => token);
    const request = (minLength: number, id = 1n) =>
      makeRequest(id, PROMPT, 20, {
        end_id: i32(ends[0]!),
        // Neither a word of two tokens nor one that the vocabulary does not have is banned.
        stop_words_list: encodeWordList([...ends.slice(1).map((token) => [token]), [97, 98], [100]]),
        min_length: i32(minLength),
        temperature: f32(1),
        random_seed: u64(id),
      });
    for (const minLength of [0, 1, 2, 7]) {
      const result = runAlone(request(minLength));
      const early = result.tokens.slice(0, minLength);
      expect(early).toHaveLength(minLength);
      expect(early.filter((token) => ends.includes(token))).toEqual([]);
      expect(result.tokens.length).toBeLessThan(20);
      expect([1, 2]).toContain(result.finishReason);
    }
    // Next to others, whose lists are of other lengths, and more of them together than there was room for at
    // first.
    const crowd = Array.from({ length: 8 }, (_, i) => request(i, BigInt(i + 1)));
    const harness = new LoopHarness().run(...crowd);
    for (const each of crowd) expect(harness.resultOf(each.requestId)).toMatchObject(runAlone(each));
  });
});
