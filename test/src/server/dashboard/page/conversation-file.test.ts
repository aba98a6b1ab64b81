import { describe, expect, it } from 'vitest';
import { exported, imported } from '../../../../../src/server/dashboard/page/chat/conversation-file.js';
import type { StoredConversation } from '../../../../../src/server/dashboard/page/chat/conversation-store.js';

const NOW = 1_760_000_000_000;
const TURN = { question: 'q', answer: 'a', reasoning: '' };
const conversation = (id: string, changedMs = 1): StoredConversation => ({
  ...{ id, title: id, model: null, changedMs },
  turns: [TURN],
});

describe('files of conversations', () => {
  it('are the same behind an export and an import', () => {
    const all = [conversation('a'), conversation('b')];
    expect(imported(exported(all), NOW)).toEqual(all);
  });

  it.each([
    ['no json', 'not JSON'],
    ['null', 'no conversations'],
    ['{"format": "other", "conversations": []}', 'no conversations'],
    [exported([{ ...conversation('a'), turns: [] }]), 'Conversation 1'],
    [exported([conversation('a'), { ...conversation('b'), changedMs: 'now' as never }]), 'Conversation 2'],
    [exported([{ ...conversation('a'), turns: [{ question: 1 } as never] }]), 'Conversation 1'],
    [exported([{ ...conversation('a'), changedMs: -1 }]), 'Conversation 1'],
    [exported([{ ...conversation('a'), contextTokens: 'abc' as never }]), 'Conversation 1'],
    [exported([conversation('a')]).replace('"turns"', '"contextTokens": 1e999, "turns"'), 'Conversation 1'],
  ])('are not read from %s', (text, words) => {
    expect(() => imported(text, NOW)).toThrow(words);
  });

  it('have only the fields that are known, and no date ahead', () => {
    const text = exported([
      { ...conversation('a', 9e15), contextTokens: 7, more: 1, turns: [TURN] } as never,
    ]);
    const read = imported(text.replace('"more"', '"__proto__": {"x": 1}, "more"'), NOW);
    expect(read).toEqual([{ ...conversation('a', NOW), contextTokens: 7 }]);
    expect(Object.hasOwn(read[0]!, 'more')).toBe(false);
  });
});
