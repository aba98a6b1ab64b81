import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessageTree } from '../../../../../../src/server/dashboard/page/chat/message-tree.js';
import {
  asTree,
  filesOf,
  type StoredMessage,
} from '../../../../../../src/server/dashboard/page/chat/stored-conversation.js';

const message = (id: string, parent: string | null): StoredMessage => ({
  ...{ id, parent, text: id },
  role: id.startsWith('q') ? 'user' : 'assistant',
});
/** Two questions, the first with two answers, and another version of the second. */
const MESSAGES = [
  message('q1', null),
  message('a1', 'q1'),
  message('a2', 'q1'),
  message('q2', 'a1'),
  message('a3', 'q2'),
  message('q3', 'a1'),
];

describe('the messages of a conversation', () => {
  it('are a tree: versions stand next to each other, and a branch goes through one of each', () => {
    const tree = new MessageTree(MESSAGES);
    expect(tree.messages).toEqual(MESSAGES);
    expect(tree.versions('a1')).toEqual(['a1', 'a2']);
    expect(tree.versions('q3')).toEqual(['q2', 'q3']);
    expect(tree.versions('q1')).toEqual(['q1']);
    expect(tree.path('a3').map(({ id }) => id)).toEqual(['q1', 'a1', 'q2', 'a3']);
    expect(tree.path(null)).toEqual([]);
    expect(['q1', 'a1', 'q2', 'a3'].map((id) => tree.leafOf(id))).toEqual(['a2', 'q3', 'a3', 'a3']);
    tree.add(message('a4', 'q3'));
    expect(tree.leafOf('a1')).toBe('a4');
    expect(new MessageTree().versions('x')).toEqual([]);
  });

  it('lose nothing, whatever is added where', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000), { minLength: 1, maxLength: 80 }), (places) => {
        const tree = new MessageTree();
        const ids: (string | null)[] = [null];
        for (const [index, place] of places.entries()) {
          const id = `${index}`;
          tree.add({ ...message(id, ids[place % ids.length]!), id });
          ids.push(id);
        }
        expect(tree.messages).toHaveLength(places.length);
        for (const { id, parent } of tree.messages) {
          const path = tree.path(id);
          expect(path.at(-1)!.id).toBe(id);
          expect(path.at(-2)?.id ?? null).toBe(parent);
          expect(tree.versions(id).filter((one) => one === id)).toHaveLength(1);
          expect(tree.path(tree.leafOf(id))).toEqual(expect.arrayContaining(path));
        }
      }),
    );
  });

  it('of a conversation that was kept before there were branches are one branch', () => {
    const file = {
      kind: 'text',
      id: 'f',
      name: 'a',
      bytes: 1,
      part: '',
      characters: 1,
      tokens: null,
      content: 'x',
    } as const;
    const old = {
      ...{ id: 'c', title: 't', model: null, changedMs: 1, contextTokens: 9 },
      turns: [
        { question: 'one', answer: 'two', reasoning: 'hm', attachments: [file] },
        { question: 'three', answer: 'four', reasoning: '' },
      ],
    };
    const kept = asTree(old);
    expect(kept).toEqual({
      ...{ id: 'c', title: 't', model: null, changedMs: 1, contextTokens: 9 },
      messages: [
        { id: 'q0', parent: null, role: 'user', text: 'one', attachments: [file] },
        { id: 'a0', parent: 'q0', role: 'assistant', text: 'two', reasoning: 'hm' },
        { id: 'q1', parent: 'a0', role: 'user', text: 'three' },
        { id: 'a1', parent: 'q1', role: 'assistant', text: 'four' },
      ],
      leaf: 'a1',
    });
    expect(asTree(kept)).toBe(kept);
    // Versions of a question share its files, which are counted once.
    const [first] = kept.messages;
    expect(filesOf({ messages: [...kept.messages, { ...first!, id: 'q9' }] })).toEqual([file]);
  });
});
