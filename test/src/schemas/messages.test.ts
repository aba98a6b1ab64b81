import { describe, expect, it } from 'vitest';
import { InvalidRequestError } from '../../../src/errors/request-errors.js';
import { templateMessage } from '../../../src/generation/messages.js';
import { readMessages } from '../../../src/schemas/messages.js';
import { say, toyServer } from '../support/toy-server.js';

const toy = toyServer(() => say('x'), { unknownFields: 'refuse' });

async function refusals(messages: unknown[]): Promise<{ program: unknown; http: unknown }> {
  const response = await toy.post('/v1/chat/completions', { messages });
  const { error } = (await response.json()) as { error: { message: string; param: string; code: string } };
  try {
    readMessages(messages);
  } catch (thrown) {
    const { message, param, apiCode } = thrown as InvalidRequestError;
    expect(thrown).toBeInstanceOf(InvalidRequestError);
    return {
      program: { message, param, code: apiCode },
      http: { message: error.message, param: error.param, code: error.code },
    };
  }
  throw new Error(`${JSON.stringify(messages)} were taken`);
}

const user = { role: 'user', content: 'a' };
const calling = (call: unknown) => [user, { role: 'assistant', tool_calls: [call] }];

describe('messages of a program', () => {
  it.each<[unknown[], string]>([
    [[], "Invalid value for 'messages': expected a list that is not empty."],
    [['Hi'], "Invalid value for 'messages[0]': expected an object."],
    [[{ role: 'usr', content: 'a' }], "Invalid value for 'messages[0].role': expected one of"],
    [[{ content: 'a' }], "'messages[0].role'"],
    [[user, { role: 'user' }], "The field 'messages[1].content' is required."],
    [
      [{ role: 'user', content: 5 }],
      "Invalid value for 'messages[0].content': expected a string or a list of",
    ],
    [
      [{ role: 'user', content: [{ type: 'image_url' }] }],
      "'messages[0].content[0].image_url': expected the URL of a picture",
    ],
    [[{ ...user, contnt: 'a' }], "Unknown field 'messages[0].contnt'. Did you mean 'content'?"],
    [[{ ...user, prefix: true }], "'messages[0].prefix' is not supported: use 'continue_final_message'."],
    [
      [{ role: 'assistant', content: 'a', toolCalls: [] }],
      "Unknown field 'messages[0].toolCalls'. Did you mean 'tool_calls'?",
    ],
    [calling({ id: 'a' }), "The field 'messages[1].tool_calls[0].function' is required."],
    [calling({ name: 'f', argumens: '{}' }), "Unknown field 'messages[1].tool_calls[0].argumens'."],
    [
      calling({ name: 'f', arguments: 5 }),
      "Invalid value for 'messages[1].tool_calls[0].arguments': expected a string of JSON",
    ],
  ])('%j are refused as over HTTP', async (messages, sentence) => {
    const { program, http } = await refusals(messages);
    expect(program).toEqual(http);
    expect((program as Error).message).toContain(sentence);
  });

  it('are refused where they are too many, as over HTTP', async () => {
    const { program, http } = await refusals(Array.from({ length: 9000 }, () => 0));
    expect(program).toEqual(http);
  });

  it.each([
    { id: 'a', name: 'f', arguments: '{"x": 1}' },
    { index: 0, id: 'a', name: 'f', arguments: '{"x": 1}' },
    { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x": 1}' } },
  ])('take the call %j', (call) => {
    const [, message] = readMessages(calling(call)).map(templateMessage);
    expect(message!.tool_calls).toEqual([
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x": 1}' } },
    ]);
  });

  it('take every role, text parts, an answer without text, and what is not set', () => {
    const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];
    const read = readMessages([
      ...roles.map((role) => ({ role, content: [{ type: 'text', text: 'a' }], name: undefined })),
      { role: 'assistant' },
      { role: 'assistant', content: null, reasoning: 'Hm', refusal: undefined },
    ]).map(templateMessage);
    expect(read.map(({ role }) => role)).toEqual([
      'system',
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'assistant',
      'assistant',
    ]);
    expect(read.at(-1)).toEqual({ role: 'assistant', content: null, reasoning_content: 'Hm' });
  });
});
