import { describe, expect, it } from 'vitest';
import { promptRulesWithout } from '../../../../src/prompt-rules.js';
import { create, refusal, server, user } from './support.js';

const assistant = (content: unknown) => ({ role: 'assistant', content });
const text = (words: string) => ({ type: 'text', text: words });

/** Messages that the template gets of a request. */
async function rendered(fields: object) {
  const toy = server('x');
  await create(toy, fields);
  return toy.rendered[0]!.messages;
}

describe('the conversation of a request', () => {
  it('begins with what the system says, as text or blocks', async () => {
    const system = (content: unknown) => ({ role: 'system', content });
    const blocks = [text('Be kind.'), text('Be brief.')];
    expect((await rendered({ system: 'Be kind.' }))[0]).toEqual(system('Be kind.'));
    expect((await rendered({ system: blocks.slice(0, 1) }))[0]).toEqual(system('Be kind.'));
    expect((await rendered({ system: blocks }))[0]).toEqual(system(blocks));
  });

  it('leaves out what a coding assistant says of itself alone', async () => {
    const billing = text('x-anthropic-billing-header: cc_version=2.1; cch=1234;');
    expect(await rendered({ system: [billing] })).toEqual([{ role: 'user', content: 'Hi' }]);
    expect((await rendered({ system: [billing, text('Help.')] }))[0]).toEqual({
      role: 'system',
      content: 'Help.',
    });
  });

  it('keeps it where its rule is switched off', async () => {
    const billing = text('x-anthropic-billing-header: cc_version=2.1; cch=1234;');
    const toy = server('x', '{{ messages }}', { promptRules: promptRulesWithout(['billing-line']) });
    await create(toy, { system: [billing] });
    expect(toy.rendered[0]!.messages[0]).toEqual({ role: 'system', content: billing.text });
  });

  it('has the messages of one role in a row as one', async () => {
    const parts = user([text('f'), text('g')]);
    const messages = [user('a'), user([text('b'), text('c')]), assistant('d'), assistant('e'), parts];
    expect(await rendered({ messages })).toEqual([user('a\nb\nc'), assistant('d\ne'), parts]);
  });

  it('may have messages of the system in its middle', async () => {
    const messages = [user('a'), { role: 'system', content: 'Now in French.' }, user('b')];
    expect(await rendered({ messages })).toEqual(messages);
  });

  it('has no blocks of tools that are not known', async () => {
    const used = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Ur' } };
    const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
    const upload = { type: 'container_upload', file_id: 'file_1' };
    const messages = [
      user([upload, text('Where?')]),
      assistant([used, found]),
      assistant([text('Let me look.'), used, found, text('In Iraq.')]),
      user('Since when?'),
    ];
    const toy = server('x');
    const response = await toy.post('/v1/messages', { model: 'toy', max_tokens: 9, messages });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-skein-warning')).toBe(
      "Blocks of the types 'container_upload', 'server_tool_use', 'web_search_tool_result' are not known here and were left out.",
    );
    const told = [user('Where?'), assistant('Let me look.\nIn Iraq.'), user('Since when?')];
    expect(toy.rendered[0]!.messages).toEqual(told);
    const typo = assistant([{ type: 'server_tool_us' }]);
    expect(await refusal(server('x'), { messages: [user('a'), typo] })).toMatchObject({ status: 400 });
  });

  it('has calls, and their results in messages of their own', async () => {
    const messages = [
      user('Weather?'),
      assistant([
        text('Let me look.'),
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Ur' } },
        { type: 'tool_use', id: 'toolu_2', name: 'time', input: {} },
      ]),
      user([
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [text('wet'), text('cold')] },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no clock', is_error: true },
        text('Well?'),
      ]),
    ];
    const call = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    });
    const toy = server('x', '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}');
    await create(toy, { messages });
    expect(toy.rendered[0]!.messages).toMatchObject([
      user('Weather?'),
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [call('toolu_1', 'weather', '{"city":"Ur"}'), call('toolu_2', 'time', '{}')],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'wet\ncold' },
      { role: 'tool', tool_call_id: 'toolu_2', content: 'Error: no clock' },
      user('Well?'),
    ]);
  });

  it('has the text of documents and of results of a search', async () => {
    const content = [
      {
        type: 'document',
        title: 'Geese',
        source: { type: 'text', media_type: 'text/plain', data: 'They fly.' },
      },
      { type: 'document', source: { type: 'content', content: [text('They'), text('swim.')] } },
      { type: 'search_result', source: 'http://a', title: 'Ducks', content: [text('So do they.')] },
      text('Who flies?'),
    ];
    const [message] = await rendered({ messages: [user(content)] });
    expect(message!.content).toBe('Geese\nThey fly.\nThey\nswim.\nDucks\nhttp://a\nSo do they.\nWho flies?');
  });
});

describe('what cannot be read is refused by its place', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'x' } };
  const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'x' } };
  it.each<[string, unknown, string]>([
    ['a picture', [user([text('See'), image])], 'messages[0].content[1]'],
    [
      'one in a result',
      [user([{ type: 'tool_result', tool_use_id: 'a', content: [image] }])],
      'messages[0].content[0].content[0]',
    ],
    ['a PDF', [user([pdf])], 'messages[0].content[0].source.type'],
    ['a block of another kind', [user([{ type: 'container' }])], 'messages[0].content[0].type'],
    ['nothing but blocks of tools that are not known', [user([{ type: 'container_upload' }])], 'messages'],
    [
      'citations',
      [user([{ ...pdf, source: { type: 'text', data: 'x' }, citations: { enabled: true } }])],
      'messages[0].content[0].citations',
    ],
    [
      'a call without its result',
      [user('a'), assistant([{ type: 'tool_use', id: 'a', name: 'f', input: {} }])],
      'messages[1]',
    ],
    ['another role', [{ role: 'boss', content: 'x' }], 'messages[0].role'],
    ['no messages', [], 'messages'],
  ])('%s', async (_, messages, param) => {
    const error = await refusal(server('x'), { messages });
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', details: { param } });
    expect(error.message).toContain(`'${param}'`);
  });
});
