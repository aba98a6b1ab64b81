import { describe, expect, it } from 'vitest';
import { search } from '../../../../../../src/server/dashboard/page/chat/conversation-search.js';
import { fileNameOf, markdownOf } from '../../../../../../src/server/dashboard/page/chat/markdown-export.js';
import type { StoredConversation } from '../../../../../../src/server/dashboard/page/chat/stored-conversation.js';

const conversation = (id: string, title: string, ...texts: string[]): StoredConversation => ({
  ...{ id, title, model: 'goose', changedMs: 1, leaf: `${texts.length - 1}` },
  messages: texts.map((text, index) => ({
    ...{ id: `${index}`, parent: index === 0 ? null : `${index - 1}`, text },
    role: index % 2 === 0 ? 'user' : 'assistant',
  })),
});

describe('a search', () => {
  const all = [
    conversation('a', 'Of geese', 'Why do they fly?', 'In a V, since İt saves strength.'),
    conversation('b', 'Other', 'x'.repeat(100), `${'y '.repeat(60)}Needle ${'z '.repeat(60)}`),
  ];
  const ids = (text: string) => search(all, text).map(({ conversation }) => conversation.id);

  it('finds titles and texts, whatever their capitals', () => {
    expect(ids('')).toEqual(['a', 'b']);
    expect(ids('GEESE')).toEqual(['a']);
    expect(ids('saves STRENGTH')).toEqual(['a']);
    expect(ids('o')).toEqual(['a', 'b']);
    expect(ids('nothing')).toEqual([]);
    expect(ids(' ')).toEqual(['a', 'b']);
  });

  it('says where, with the words around it', () => {
    expect(search(all, 'geese')[0]!.place).toBeNull();
    const place = search(all, 'needle')[0]!.place!;
    expect(place.message).toBe('1');
    expect(place.words).toMatch(/^…(y ){20}Needle (z ?){20}…$/);
    expect(search(all, 'strength')[0]!.place!.words).toBe('In a V, since İt saves strength.');
  });
});

describe('a chat as Markdown', () => {
  it('has the branch that is shown, what was thought, and the names of files', () => {
    const file = {
      kind: 'text',
      id: 'f',
      name: 'a\n# b.txt',
      bytes: 5,
      part: '',
      characters: 5,
      tokens: 2,
      content: 'Gans',
    } as const;
    const one = conversation('a', 'Of\ngeese', 'Why?', 'First.', 'And?', '```js\nhonk()\n```');
    const messages = [
      { ...one.messages[0]!, attachments: [file] },
      { ...one.messages[1]!, reasoning: 'Hm.\nWell.' },
      { ...one.messages[1]!, id: 'other', text: 'Not shown.' },
      ...one.messages.slice(2),
    ];
    expect(markdownOf({ ...one, messages })).toBe(
      [
        '# Of geese',
        '## Question',
        '*Attached: a # b.txt (2 tokens)*',
        'Why?',
        '## goose',
        '> Hm.\n> Well.',
        'First.',
        '## Question',
        'And?',
        '## goose',
        '```js\nhonk()\n```\n',
      ].join('\n\n'),
    );
    expect(markdownOf({ ...one, model: null })).toContain('## Answer');
  });

  it('has a name for its file that any system takes', () => {
    expect(fileNameOf('Why do geese fly? /../x')).toBe('Why-do-geese-fly-x.md');
    expect(fileNameOf('…')).toBe('chat.md');
    expect(fileNameOf('Gänse'.repeat(30))).toHaveLength(63);
  });
});
