import { describe, expect, it } from 'vitest';
import type { Attachment } from '../../../../../src/server/dashboard/page/chat/attachments/attachment.js';
import { exportedFile, imported } from '../../../../../src/server/dashboard/page/chat/conversation-file.js';
import type { StoredConversation } from '../../../../../src/server/dashboard/page/chat/stored-conversation.js';

const NOW = 1_760_000_000_000;
const QUESTION = { id: 'q', parent: null, role: 'user', text: 'q' } as const;
const ANSWER = { id: 'a', parent: 'q', role: 'assistant', text: 'a' } as const;
const TURN = { question: 'q', answer: 'a', reasoning: '' };
const conversation = (id: string, changedMs = 1): StoredConversation => ({
  ...{ id, title: id, model: null, changedMs },
  messages: [QUESTION, ANSWER],
  leaf: 'a',
});

/** A file as anybody may have written it. */
const fileOf = (conversations: object[]) => JSON.stringify({ format: 'skein-conversations', conversations });
const exported = async (all: StoredConversation[]) => (await exportedFile(all)).text();

const PICTURE: Attachment = {
  ...{ kind: 'picture', id: 'p', name: 'goose.png', bytes: 4, type: 'image/png', width: 2, height: 1 },
  content: 'iVBORw==',
};
const TEXT: Attachment = {
  ...{
    kind: 'text',
    id: 't',
    name: 'a.pdf',
    bytes: 900,
    part: 'pages 1 to 2 of 3',
    characters: 3,
    tokens: 1,
  },
  content: 'Gan',
};
const withFile = (file: object) => ({
  ...conversation('a'),
  messages: [{ ...QUESTION, attachments: [file as Attachment] }, ANSWER],
});

describe('files of conversations', () => {
  it('are the same behind an export and an import, with their attachments', async () => {
    const gone = { ...PICTURE, content: null };
    const asked = { ...QUESTION, attachments: [PICTURE, TEXT, gone] };
    const call = { server: 's', name: 'n', arguments: '{}', output: '5', error: null, isDenied: false };
    const again = { ...ANSWER, id: 'b', reasoning: 'hm', reasoningMs: 12, calls: [call] };
    const attached = { ...conversation('c'), messages: [asked, ANSWER, again] };
    const all = [conversation('a'), conversation('b'), attached];
    const text = await exported(all);
    expect(JSON.parse(text)).toEqual({ format: 'skein-conversations', version: 2, conversations: all });
    expect(imported(text, NOW)).toEqual(all);
    expect(imported(await exported([]), NOW)).toEqual([]);
  });

  it.each([
    { ...PICTURE, type: 'image/svg+xml' },
    { ...PICTURE, content: 'iVBORw=' },
    { ...PICTURE, content: '_VBORw==' },
    { ...PICTURE, bytes: 40 },
    { ...PICTURE, width: 'wide' },
    { ...PICTURE, kind: 'script' },
    { ...PICTURE, id: '' },
    { ...TEXT, content: 5 },
    { ...TEXT, characters: 2 },
    { ...TEXT, tokens: 'many' },
    null,
  ])('are not read with an attachment as %j', async (file) => {
    const text = await exported([withFile(file as object)]);
    expect(() => imported(text, NOW)).toThrow('Conversation 1');
  });

  it.each([
    ['no json', 'not JSON'],
    ['null', 'no conversations'],
    ['{"format": "other", "conversations": []}', 'no conversations'],
    [fileOf([{ ...conversation('a'), messages: [] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), leaf: 'other' }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), messages: [ANSWER, QUESTION] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), messages: [QUESTION, QUESTION] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), messages: [QUESTION, { ...ANSWER, role: 'user' }] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), messages: [{ ...ANSWER, parent: null }] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), messages: [QUESTION, { ...ANSWER, calls: [{}] }] }]), 'Conversation 1'],
    [
      fileOf([{ ...conversation('a'), messages: [QUESTION, { ...ANSWER, reasoningMs: -1 }] }]),
      'Conversation 1',
    ],
    [fileOf([{ ...conversation('a'), turns: [] }]), 'Conversation 1'],
    [fileOf([conversation('a'), { ...conversation('b'), changedMs: 'now' }]), 'Conversation 2'],
    [fileOf([{ ...conversation('a'), turns: [{ question: 1 }] }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), changedMs: -1 }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), contextTokens: 'abc' }]), 'Conversation 1'],
    [fileOf([{ ...conversation('a'), turns: [{ ...TURN, attachments: 'many' }] }]), 'Conversation 1'],
    [
      fileOf([conversation('a')]).replace('"messages"', '"contextTokens": 1e999, "messages"'),
      'Conversation 1',
    ],
  ])('are not read from %s', (text, words) => {
    expect(() => imported(text, NOW)).toThrow(words);
  });

  it('of a page without branches are read as one branch', () => {
    const { messages: _, leaf, ...old } = conversation('a');
    const [read] = imported(fileOf([{ ...old, turns: [TURN, { ...TURN, reasoning: 'hm' }] }]), NOW);
    expect(read!.messages.map(({ text, parent }) => [text, parent])).toEqual([
      ['q', null],
      ['a', 'q0'],
      ['q', 'a0'],
      ['a', 'q1'],
    ]);
    expect([leaf, read!.leaf]).toEqual(['a', 'a1']);
  });

  it('have only the fields that are known, and no date ahead', () => {
    const text = fileOf([{ ...conversation('a', 9e15), contextTokens: 7, more: 1 }]);
    const read = imported(text.replace('"more"', '"__proto__": {"x": 1}, "more"'), NOW);
    expect(read).toEqual([{ ...conversation('a', NOW), contextTokens: 7 }]);
    expect(Object.hasOwn(read[0]!, 'more')).toBe(false);
  });
});
