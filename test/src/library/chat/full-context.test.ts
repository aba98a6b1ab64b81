import { describe, expect, it } from 'vitest';
import type { ChatEvent } from '../../../../src/index.js';
import { scriptedChat } from './scripted-chat.js';

/** A token is a byte here: this leaves 300 for prompts. */
const small = { maxSeqLen: 400, maxInputLen: 400 };
const turn = (letter: string) => letter.repeat(60);

async function roomOf(stream: AsyncIterable<ChatEvent<unknown>>) {
  const found: ChatEvent<unknown>[] = [];
  for await (const event of stream) if (event.type === 'room') found.push(event);
  return found;
}

describe('a chat whose context is full', () => {
  it('drops its oldest turns, never the system message, and more than it must', async () => {
    const { chat, prompts } = await scriptedChat(['A', 'B', 'C', 'D', 'E'], { system: 'Short.' }, small);
    const rooms = [];
    for (const letter of 'abcde') rooms.push(await roomOf(chat.stream(turn(letter))));
    expect(rooms.map((found) => found.length)).toEqual([0, 0, 0, 1, 0]);
    expect(rooms[3]).toEqual([{ type: 'room', leftOut: 4, summary: null }]);
    expect(prompts()[3]).toContain(
      `<system>Short.</><user>${turn('c')}</><assistant>C</><user>${turn('d')}</>`,
    );
    expect(prompts()[4]!.startsWith(prompts()[3]!.replace(/<assistant>$/, ''))).toBe(true);
    expect(chat.messages[1]!.content).toBe(turn('c'));
  });

  it('has the model summarise them, once', async () => {
    const said = ['A', 'B', 'C', 'D', 'They spoke of letters.', 'E', 'F'];
    const context = { maxSeqLen: 3000, maxInputLen: 3000 };
    const { chat, prompts, engine } = await scriptedChat(
      said,
      { whenFull: 'summarise', system: 'S' },
      context,
    );
    const long = (letter: string) => letter.repeat(530);
    for (const letter of 'abcd') await chat.send(long(letter));
    const found = await roomOf(chat.stream(long('e')));
    expect(found).toEqual([{ type: 'room', leftOut: 6, summary: 'They spoke of letters.' }]);
    expect(prompts()[4]).toContain(long('c'));
    expect(prompts()[4]).not.toContain(long('d'));
    expect(prompts()[4]).toContain(
      'sees nothing of the conversation but your summary and what was said last.',
    );
    expect(engine.requests[4]).toMatchObject({ temperature: 0, maxNewTokens: 562 });
    expect(prompts()[5]).toMatch(
      /<system>S<\/><user>[^<]*They spoke of letters\.<\/><user>d+<\/><assistant>D<\/><user>e+<\/>/,
    );
    const roles = ['system', 'user', 'user', 'assistant', 'user', 'assistant'];
    expect(chat.messages.map(({ role }) => role)).toEqual(roles);
    expect(await roomOf(chat.stream('f'))).toEqual([]);
  });

  it('is refused, if so asked, and is as it was', async () => {
    const { chat, engine } = await scriptedChat(['A', 'B', 'C'], { whenFull: 'refuse' }, small);
    for (const letter of 'abc') await chat.send(turn(letter));
    await expect(chat.send(turn('d'))).rejects.toMatchObject({
      code: 'SKEIN_CONTEXT_LENGTH',
      message: expect.stringMatching(
        /maximum context length is 400 tokens.*the conversation has \d+ tokens, of 300/,
      ),
    });
    expect([engine.requests.length, chat.messages.length]).toEqual([3, 6]);
  });

  it.each(['drop', 'summarise', 'refuse'] as const)(
    'refuses a turn that is too long alone: %s',
    async (whenFull) => {
      const { chat, engine } = await scriptedChat([], { whenFull }, small);
      await expect(chat.send('x'.repeat(310))).rejects.toMatchObject({ code: 'SKEIN_CONTEXT_LENGTH' });
      await expect(chat.send('x'.repeat(5000))).rejects.toMatchObject({ code: 'SKEIN_CONTEXT_LENGTH' });
      expect(engine.requests).toEqual([]);
    },
  );

  it('leaves the room that an answer is to have', async () => {
    const { chat } = await scriptedChat(['A', 'B'], { maxTokens: 250 }, small);
    await chat.send(turn('a'));
    expect(await roomOf(chat.stream(turn('b')))).toMatchObject([{ leftOut: 2 }]);
  });

  it('makes few prompts for it, however many messages there are', async () => {
    const messages = Array.from({ length: 400 }, (_, i) => ({
      role: i % 2 === 0 ? 'user' : 'assistant',
      content: 'abcdef',
    }));
    const { toyCodec } = await import('../../support/toy-codec.js');
    let renders = 0;
    const codec = {
      ...toyCodec,
      encodeChat: (...asked: Parameters<typeof toyCodec.encodeChat>) => {
        renders++;
        return toyCodec.encodeChat(...asked);
      },
    };
    const { chat } = await scriptedChat(['x'], { messages }, { ...small, codec });
    await chat.send('last');
    expect(renders).toBeLessThan(14);
    expect(chat.messages.length).toBeLessThan(30);
  });
});
