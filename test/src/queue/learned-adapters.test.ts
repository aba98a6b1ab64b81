import { describe, expect, it, vi } from 'vitest';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { ModelCard } from '../../../cluster/nats/beat.js';
import type { TextModel } from '../../../src/generation/text-model.js';
import { LearnedAdapters } from '../../../src/queue/learned-adapters.js';

const adapter = { name: 'law', rank: 4, modules: ['attn_q'], bytes: 100, digest: 'd1' };
const without = { adapterRoom: null, adapters: [] } as unknown as ModelCard;
const withOne = { adapterRoom: { maxAdapters: 8, maxRank: 16 }, adapters: [adapter] } as unknown as ModelCard;

function learned(cards: ModelCard[]) {
  const submitted: TokenRequest[] = [];
  const model = {
    maxInputLen: 10,
    maxSeqLen: 20,
    engine: { submit: (request: TokenRequest) => void submitted.push(request) },
  } as unknown as TextModel;
  return { adapters: new LearnedAdapters(model, () => cards), submitted };
}

describe('adapters of a gateway', () => {
  it('are those of the workers that are there, whoever came first', () => {
    const cards = [without];
    const { adapters } = learned(cards);
    expect([adapters.list(), adapters.room.maxAdapters, adapters.changes]).toEqual([[], 0, 0]);
    cards.push(withOne);
    expect(adapters.list().map(({ name }) => name)).toEqual(['law']);
    expect([adapters.room.maxAdapters, adapters.changes, adapters.has('law')]).toEqual([8, 1, true]);
    expect(() => adapters.get('lore')).toThrow(
      "There is no adapter 'lore'; the adapters of a gateway are those of its workers (skein work --lora NAME=PATH).",
    );
  });

  it('stay for a minute when the last worker that has them goes, and while there is no worker at all', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      const cards = [without, withOne];
      const { adapters } = learned(cards);
      expect(adapters.has('law')).toBe(true);
      cards.length = 0;
      vi.advanceTimersByTime(1e6);
      expect(adapters.has('law')).toBe(true);
      cards.push(withOne);
      expect(adapters.has('law')).toBe(true);
      cards.splice(0, 1, without);
      vi.advanceTimersByTime(59_000);
      expect(adapters.has('law')).toBe(true);
      vi.advanceTimersByTime(2_000);
      expect(adapters.has('law')).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });

  it('are named in the requests of their models', () => {
    const { adapters, submitted } = learned([without, withOne]);
    adapters.get('law').model.engine.submit({ promptTokens: [1] } as unknown as TokenRequest);
    expect(submitted).toEqual([{ promptTokens: [1], adapterName: 'law' }]);
  });
});
