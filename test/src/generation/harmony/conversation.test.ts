import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../../models/chat-template.js';
import { harmonyMessages } from '../../../../src/generation/harmony/conversation.js';

const user: ChatMessage = { role: 'user', content: 'u' };
const call = (id: string) => ({ id, type: 'function', function: { name: `f${id}`, arguments: '{}' } });
const calling = (ids: string, fields: object = {}): ChatMessage => ({
  role: 'assistant',
  content: null,
  ...fields,
  tool_calls: ids.split('').map(call),
});
const result = (id: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content: `r${id}` });

/** Such as 'assistant thinking=t f1' */
const told = (messages: readonly ChatMessage[]) =>
  harmonyMessages(messages).map(({ role, content, thinking, tool_calls: calls = [], ...rest }) => {
    const named = (calls as ReturnType<typeof call>[]).map((one) => one.function.name);
    expect(rest).not.toHaveProperty('reasoning_content');
    return [role, ...(thinking === undefined ? [] : [`thinking=${thinking as string}`]), content, ...named]
      .join(' ')
      .trim();
  });

describe('a conversation for a harmony template', () => {
  it('has each call in a message of its own, with its result behind it', () => {
    const messages = [user, calling('12', { reasoning_content: 't' }), result('2'), result('1'), user];
    expect(told(messages)).toEqual([
      'user u',
      'assistant thinking=t  f1',
      'tool r1',
      'assistant  f2',
      'tool r2',
      'user u',
    ]);
  });

  it('has the text of a message with calls behind its reasoning', () => {
    expect(told([calling('1', { reasoning_content: 't', content: 'c' })])).toEqual([
      'assistant thinking=t\n\nc  f1',
    ]);
    expect(told([calling('1', { content: [{ type: 'text', text: 'c' }] })])).toEqual([
      'assistant thinking=c  f1',
    ]);
  });

  it('has all texts of the system at its beginning', () => {
    const system = (content: string): ChatMessage => ({ role: 'system', content });
    expect(told([user, system('a'), system('b')])).toEqual(['system a\n\nb', 'user u']);
  });

  it('keeps reasoning without calls, and results without calls as the user’s', () => {
    const answer: ChatMessage = { role: 'assistant', content: 'a', reasoning_content: 't' };
    expect(told([user, answer, result('1')])).toEqual(['user u', 'assistant thinking=t a', 'user r1']);
    expect(told([calling('1'), result('1'), result('1')])).toEqual(['assistant  f1', 'tool r1', 'tool r1']);
  });
});
