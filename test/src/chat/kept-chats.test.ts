import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ChatFileError, MAX_CHAT_BYTES } from '../../../src/chat/chat-file.js';
import { Conversation } from '../../../src/chat/conversation.js';
import { KeptChats, keptLines, MAX_KEPT_CHATS } from '../../../src/chat/kept-chats.js';
import { temporaryFolder } from '../../support/fresh-folders.js';

const parent = temporaryFolder('skein-kept');
let folders = 0;
const problems: string[] = [];
const freshFolder = () => join(parent, `chats-${++folders}`);
const keptIn = (folder: string) => new KeptChats(folder, (problem) => problems.push(problem));

function chatOf(question: string, answer = 'Yes.') {
  const conversation = new Conversation('Be brief.');
  conversation.ask(question);
  conversation.answer(answer);
  return { model: 'toy', settings: { temperature: 0.5 }, conversation, asked: { url: 'http://h:1' } };
}

describe('kept chats', () => {
  it('are files of their user alone, go on in the same file, and come back as they were', () => {
    const folder = freshFolder();
    const kept = keptIn(folder);
    expect(kept.id).toBeNull();
    const chat = chatOf('Who are\nyou, \x1b[2Jgoose?');
    kept.keep(chat);
    chat.conversation.ask('And then?');
    chat.conversation.call('', [{ id: 'c1', name: 'fly', arguments: '{}' }]);
    chat.conversation.result('c1', 'flown');
    chat.conversation.answer('I flew.');
    kept.keep(chat);
    const id = kept.id!;
    expect(id).toMatch(/^[a-z2-9]{5}$/);
    expect(readdirSync(folder)).toEqual([`${id}.json`]);
    expect([statSync(join(folder, `${id}.json`)).mode & 0o777, statSync(folder).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    const other = keptIn(folder);
    const [line] = keptLines(other.list());
    expect(line).toMatch(
      new RegExp(`^${id}  \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  toy    2  Who are you, \\[2Jgoose\\?$`),
    );
    const back = other.resume(id);
    expect(back.conversation.whole).toEqual(chat.conversation.whole);
    expect(back).toMatchObject({
      model: 'toy',
      settings: { temperature: 0.5 },
      asked: { url: 'http://h:1' },
    });
  });

  it('go on in a file of their own where another process has written theirs', () => {
    const folder = freshFolder();
    const one = keptIn(folder);
    one.keep(chatOf('first'));
    const other = keptIn(folder);
    const resumed = other.resume();
    utimesSync(join(folder, `${one.id}.json`), 5, 5);
    other.keep(resumed);
    expect(other.id).not.toBe(one.id);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it('are the newest ones, at most as many as are kept', () => {
    const folder = freshFolder();
    mkdirSync(folder);
    const text = JSON.stringify({ kind: 'skein-chat', version: 1, model: 'toy', settings: {}, messages: [] });
    for (let at = 0; at < MAX_KEPT_CHATS + 3; at++) {
      const letters = 'abcdefghjkmnpqrstuvwxyz';
      const name = `aaa${letters[Math.floor(at / 23)]}${letters[at % 23]}.json`;
      writeFileSync(join(folder, name), text);
      utimesSync(join(folder, name), 1000 + at, 1000 + at);
    }
    writeFileSync(join(folder, 'mine.txt'), 'mine');
    const kept = keptIn(folder);
    kept.keep(chatOf('newest'));
    expect(readdirSync(folder)).toHaveLength(MAX_KEPT_CHATS + 1);
    expect(readdirSync(folder)).not.toContain('aaaaa.json');
    expect(kept.list(2).map(({ title }) => title)).toEqual(['newest', '']);
    expect(keptIn(folder).resume().conversation.turns[0]!.content).toBe('newest');
  });

  it('are deleted where that is asked for, and unknown ones are told', () => {
    const kept = keptIn(freshFolder());
    expect(() => kept.resume()).toThrow('No chat is kept in');
    kept.keep(chatOf('a'));
    const id = kept.id!;
    expect(() => kept.resume('zzzzz')).toThrow(
      'There is no kept chat zzzzz; skein chat --list shows those that are kept.',
    );
    expect(() => kept.forget(`${id.slice(0, 4)}9x`)).toThrow(`did you mean ${id}?`);
    expect(() => kept.forget('../../etc/passwd')).toThrow(ChatFileError);
    kept.forget(id);
    expect([kept.id, kept.list()]).toEqual([null, []]);
  });

  it('are as they were last where one is too long or cannot be written, which is told once', () => {
    const folder = freshFolder();
    const kept = keptIn(folder);
    kept.keep(chatOf('short'));
    problems.length = 0;
    for (const _ of [1, 2]) kept.keep(chatOf('long', 'x'.repeat(MAX_CHAT_BYTES)));
    expect(problems).toEqual([
      expect.stringMatching(/^This chat has \d+ bytes and is not kept further: 4194304 are the most\.$/),
    ]);
    expect(readFileSync(join(folder, `${kept.id}.json`), 'utf8')).toContain('short');
    const file = join(parent, 'file');
    writeFileSync(file, '');
    keptIn(join(file, 'chats')).keep(chatOf('a'));
    expect(problems[1]).toMatch(/cannot be written: /);
  });
});

describe('a conversation', () => {
  it('hides its oldest questions from the model, and keeps them', async () => {
    const conversation = new Conversation('s');
    for (const at of [1, 2, 3, 4]) {
      conversation.ask(`q${at}`);
      conversation.answer(`a${at}`);
    }
    conversation.ask('q5');
    const hidden = await conversation.makeFit(async (messages) => messages.length <= 4);
    expect(hidden).toBe(3);
    expect(conversation.messages.map(({ content }) => content)).toEqual(['s', 'q4', 'a4', 'q5']);
    expect(conversation.whole).toHaveLength(10);
    expect(conversation.forgetOldest()).toBe(true);
    expect(conversation.forgetOldest()).toBe(false);
    conversation.answer('');
    expect(conversation.whole).toHaveLength(9);
    expect(conversation.retry()).toBe(true);
    expect(conversation.messages.map(({ content }) => content)).toEqual(['s', 'q4']);
  });
});
