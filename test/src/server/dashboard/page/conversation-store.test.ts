import { describe, expect, it } from 'vitest';
import {
  ConversationStore,
  exported,
  imported,
  MOST_CONVERSATIONS,
  type StoredConversation,
  titleOf,
} from '../../../../../src/server/dashboard/page/chat/conversation-store.js';

const conversation = (id: string, changedMs = 1): StoredConversation => ({
  id,
  title: id,
  model: null,
  changedMs,
  turns: [{ question: 'q', answer: 'a', reasoning: '' }],
});

describe('conversations of the page', () => {
  it('are kept in the tab where the browser has no store, the latest first, and not without end', async () => {
    const store = new ConversationStore(null);
    await store.put(conversation('a', 1));
    await store.put(conversation('b', 2));
    await store.put({ ...conversation('a', 3), title: 'again' });
    expect((await store.list()).map(({ id, title }) => [id, title])).toEqual([
      ['a', 'again'],
      ['b', 'b'],
    ]);
    await store.remove('a');
    for (let i = 0; i < MOST_CONVERSATIONS + 3; i++) await store.put(conversation(`c${i}`, 10 + i));
    const all = await store.list();
    expect([all.length, all.at(-1)!.id]).toEqual([MOST_CONVERSATIONS, 'c3']);
  });

  it('are the same behind an export and an import', () => {
    const all = [conversation('a'), conversation('b')];
    expect(imported(exported(all))).toEqual(all);
  });

  it.each([
    ['no json', 'not JSON'],
    ['null', 'no conversations'],
    ['{"format": "other", "conversations": []}', 'no conversations'],
    [exported([{ ...conversation('a'), turns: [] }]), 'Conversation 1'],
    [exported([conversation('a'), { ...conversation('b'), changedMs: 'now' as never }]), 'Conversation 2'],
    [exported([{ ...conversation('a'), turns: [{ question: 1 } as never] }]), 'Conversation 1'],
  ])('are not read from %s', (text, words) => {
    expect(() => imported(text)).toThrow(words);
  });

  it('have the beginning of their first question as their title', () => {
    expect(titleOf('  Two\n words ')).toBe('Two words');
    expect(titleOf('x'.repeat(100))).toBe(`${'x'.repeat(59)}…`);
  });
});
