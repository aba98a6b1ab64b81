import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { importWords } from '../../../../../src/server/dashboard/page/chat/conversation-list.js';
import {
  ConversationStore,
  MAX_CONTENT,
  MAX_CONVERSATIONS,
} from '../../../../../src/server/dashboard/page/chat/conversation-store.js';
import {
  type StoredConversation,
  titleIn,
  titleOf,
} from '../../../../../src/server/dashboard/page/chat/stored-conversation.js';

const conversation = (id: string, changedMs = 1): StoredConversation => ({
  id,
  title: id,
  model: null,
  changedMs,
  messages: [{ id: 'q', parent: null, role: 'user', text: 'q' }],
  leaf: 'q',
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
    for (let i = 0; i < MAX_CONVERSATIONS + 3; i++) await store.put(conversation(`c${i}`, 10 + i));
    const all = await store.list();
    expect([all.length, all.at(-1)!.id]).toEqual([MAX_CONVERSATIONS, 'c3']);
  });

  it('are not dropped when they change, however far ahead the dates of others are', async () => {
    const store = new ConversationStore(null);
    for (let i = 0; i < MAX_CONVERSATIONS; i++) await store.put(conversation(`c${i}`, 9e15 + i));
    await store.put(conversation('mine', 1));
    const all = await store.list();
    expect([all.length, all.at(-1)!.id, all.some(({ id }) => id === 'c0')]).toEqual([200, 'mine', false]);
  });

  it('are the latest of those that were here and those of a file, and of two states of one the later', async () => {
    const dated = fc.uniqueArray(fc.tuple(fc.nat(400), fc.nat(1000)), {
      selector: ([id]) => id,
      maxLength: 260,
    });
    await fc.assert(
      fc.asyncProperty(dated, dated, async (before, file) => {
        const made = (list: [number, number][]) => list.map(([id, ms]) => conversation(`${id}`, ms));
        const store = new ConversationStore(null);
        await store.merge(made(before));
        const here = await store.list();
        const merged = await store.merge(made(file));
        const latest = new Map<string, number>();
        for (const { id, changedMs } of [...here, ...made(file)])
          latest.set(id, Math.max(changedMs, latest.get(id) ?? 0));
        const expected = [...latest.values()].sort((one, other) => other - one).slice(0, MAX_CONVERSATIONS);
        const all = await store.list();
        expect(all.map(({ changedMs }) => changedMs)).toEqual(expected);
        expect(all.every(({ id, changedMs }) => latest.get(id) === changedMs)).toBe(true);
        expect(merged.dropped).toBe(latest.size - expected.length);
        expect(merged.taken + merged.here).toBeLessThanOrEqual(file.length);
        // The same file a second time brings nothing that is not here.
        const again = await store.merge(made(file));
        expect(await store.list()).toEqual(all);
        expect(again.taken).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  it('are kept without their files where those of all are too large, and are not imported then', async () => {
    const picture = {
      kind: 'picture',
      id: 'p',
      name: 'a.png',
      type: 'image/png',
      width: 1,
      height: 1,
    } as const;
    const heavy = (id: string, bytes: number): StoredConversation => ({
      ...conversation(id),
      messages: [
        {
          ...{ id: 'q', parent: null, role: 'user', text: '' },
          attachments: [{ ...picture, bytes, content: '' }],
        },
      ],
    });
    const contentOf = (one: StoredConversation | null) => one!.messages[0]!.attachments![0]!.content;
    const store = new ConversationStore(null);
    const most = (MAX_CONTENT * 3) / 4;
    expect(await store.put(heavy('a', most - 9))).toBe('all');
    expect(await store.put(heavy('b', 30))).toBe('texts');
    expect([contentOf(await store.find('a')), contentOf(await store.find('b'))]).toEqual(['', null]);
    await expect(store.merge([heavy('c', 60)])).rejects.toThrow('no room for these conversations');
    expect(await store.find('c')).toBeNull();
    await store.remove('a');
    expect(await store.put(heavy('b', 30))).toBe('all');
    expect(titleOf(heavy('b', 30).messages[0]!)).toBe('a.png');
  });

  it('are counted in words behind an import', () => {
    expect(importWords({ taken: 1, here: 0, dropped: 0 })).toBe('1 conversation imported.');
    expect(importWords({ taken: 0, here: 1, dropped: 0 })).toBe(
      '0 conversations imported. 1 was here already, in the same state or a later one.',
    );
    expect(importWords({ taken: 200, here: 2, dropped: 101 })).toBe(
      '200 conversations imported. 2 were here already, in the same state or a later one. The latest 200 are kept: 101 older ones left out.',
    );
  });

  it('have the title that the reader gave them, else the beginning of their first question', () => {
    const messages = [{ id: 'q', parent: null, role: 'user', text: 'changed' } as const];
    expect(titleIn({ messages, leaf: 'q' }, null)).toBe('changed');
    expect(titleIn({ messages, leaf: 'q' }, { ...conversation('a'), title: 'q' })).toBe('changed');
    expect(titleIn({ messages, leaf: 'q' }, { ...conversation('a'), title: 'mine' })).toBe('mine');
    expect(titleOf({ text: '  Two\n words ' })).toBe('Two words');
    expect(titleOf({ text: 'x'.repeat(100) })).toBe(`${'x'.repeat(59)}…`);
  });
});
