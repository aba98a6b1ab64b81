import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ENTRIES_A_TURN, TurnShare } from '../../../../src/server/answering/turn-share.js';
import { toyServer } from '../../support/toy-server.js';

function shareOf() {
  const heard: string[] = [];
  const share = new TurnShare({ onUsed: () => heard.push('used'), onNext: () => heard.push('next') });
  return { share, heard };
}

describe('the share that a request has of a turn', () => {
  it('is used up once, and is there again in the next turn', async () => {
    const { share, heard } = shareOf();
    share.use(ENTRIES_A_TURN - 1);
    expect([share.isUsed, heard]).toEqual([false, []]);
    share.use(1);
    share.use(100);
    expect([share.isUsed, heard]).toEqual([true, ['used']]);
    await nextTurn();
    expect([share.isUsed, heard]).toEqual([false, ['used', 'next']]);
    share.use(ENTRIES_A_TURN);
    expect(heard).toEqual(['used', 'next', 'used']);
  });

  it('is whole again where a turn did not use it up, and nobody is told', async () => {
    const { share, heard } = shareOf();
    for (let i = 0; i < 5; i++) {
      share.use(ENTRIES_A_TURN - 1);
      await nextTurn();
    }
    expect(heard).toEqual([]);
  });
});

describe('a stream with more log-probs than a turn has room for', () => {
  const TOP = 20;
  const CHOICES = 128;
  const TOKENS = 12;
  const top = Array.from({ length: TOP }, (_, i) => [65 + i, -i - 0.5] as [number, number]);
  const toy = () =>
    toyServer(
      () => [
        ...Array.from({ length: TOKENS }, () => ({ tokens: [65], logProbs: [-0.5], top: [top] })),
        { finish: 'length' as const },
      ],
      { model: { maxInputLen: 4096, maxSeqLen: 8192, vocabSize: 300 } },
    );

  it('has all of every choice in its order', async () => {
    const fields = { prompt: 'goose', n: CHOICES, logprobs: TOP, max_tokens: TOKENS, stream: true };
    const text = await (await toy().post('/v1/completions', fields)).text();
    const texts = Array(CHOICES).fill('') as string[];
    const counts = Array(CHOICES).fill(0) as number[];
    for (const line of text.split('\n\n')) {
      if (!line.startsWith('data: {')) continue;
      for (const choice of (JSON.parse(line.slice(6)) as { choices: Chunk[] }).choices) {
        texts[choice.index] += choice.text;
        counts[choice.index]! += choice.logprobs?.tokens.length ?? 0;
      }
    }
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(counts).toEqual(Array(CHOICES).fill(TOKENS));
    expect(texts).toEqual(Array(CHOICES).fill('A'.repeat(TOKENS)));
  });
});

interface Chunk {
  index: number;
  text: string;
  logprobs: { tokens: string[] } | null;
}
