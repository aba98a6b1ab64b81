import { describe, expect, it } from 'vitest';
import type { UnknownFieldRule } from '../../../src/schemas/field-rules.js';
import { say, type ToyOptions, toyServer } from '../support/toy-server.js';

const messages = [{ role: 'user', content: 'Hi' }];
const chat = '/v1/chat/completions';

interface Told {
  status: number;
  header: string | null;
  message: string;
  param: string | null;
  code: string | null;
  logged: string[];
}

async function ask(path: string, body: object, options: ToyOptions = {}): Promise<Told> {
  const logged: string[] = [];
  const quiet = () => {};
  const warn = (fields: object) => logged.push((fields as { fields: string }).fields);
  const toy = toyServer(() => say('x'), {
    ...options,
    log: { debug: quiet, info: quiet, warn, error: quiet },
  });
  const response = await toy.post(path, body);
  const text = await response.text();
  const error = response.ok ? {} : (JSON.parse(text) as { error: object }).error;
  const header = response.headers.get('x-unknown-fields');
  return { status: response.status, header, message: '', param: null, code: null, logged, ...error };
}

const withRule = (unknownFields: UnknownFieldRule) => ({ unknownFields });
const nested = {
  messages: [{ role: 'user', contnt: 1, content: [{ type: 'text', text: 'a', txt: 1 }] }],
  tools: [{ type: 'function', function: { name: 'f', parameters: { anything: 1 }, parms: {} } }],
  response_format: { type: 'json_schema', json_schema: { name: 'x', schma: {} } },
  tool_choice: 'none',
};
const NESTED = [
  'messages[0].contnt',
  'messages[0].content[0].txt',
  'tools[0].function.parms',
  'response_format.json_schema.schma',
];

describe('a field that nobody knows', () => {
  it.each<[string, object]>([
    [chat, { messages }],
    ['/v1/completions', { prompt: 'a' }],
    ['/v1/responses', { input: 'a' }],
    ['/tokenize', { prompt: 'a' }],
    ['/detokenize', { tokens: [1] }],
  ])('is told with the answer of %s, refused or ignored', async (path, body) => {
    const fields = { ...body, unheard_of: 1 };
    const told = await ask(path, fields);
    expect(told).toMatchObject({ status: 200, header: 'unheard_of', logged: ['unheard_of'] });
    expect(await ask(path, fields, withRule('ignore'))).toMatchObject({
      status: 200,
      header: null,
      logged: [],
    });
    const code = 'unknown_parameter';
    const refused = await ask(path, fields, withRule('refuse'));
    expect(refused).toMatchObject({ status: 400, param: 'unheard_of', code, header: null, logged: [] });
    expect(await ask(path, body, withRule('refuse'))).toMatchObject({ status: 200, header: null });
  });

  it('is found in nested objects, but not among names of the client', async () => {
    expect((await ask(chat, nested)).header).toBe(NESTED.join(', '));
    const { param, message } = await ask(chat, nested, withRule('refuse'));
    expect(param).toBe(NESTED[0]);
    expect(message).toBe("Unknown field 'messages[0].contnt'. Did you mean 'content'?");
  });

  it.each<[object, string | null]>([
    [
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'a', x: 1 }], y: 2 }] },
      'input[0].content[0].x, input[0].y',
    ],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', z: 1 }] }, 'input[0].z'],
    [{ input: 'a', metadata: { mine: 'b' }, text: { form: 1 } }, 'text.form'],
  ])('is found in items of %j', async (body, header) => {
    expect(await ask('/v1/responses', body)).toMatchObject({ status: 200, header });
  });

  it('is told with an error too', async () => {
    const told = await ask(chat, { messges: messages });
    expect(told).toMatchObject({ status: 400, param: 'messages', header: 'messges' });
  });

  it('has a name that a header can hold', async () => {
    const told = await ask(chat, { messages, 'a\r\nb: c, \u00e9\ud800': 1, __proto__x: 1 });
    expect(told.header).toBe('a%0D%0Ab:%20c%2C%20%C3%A9%EF%BF%BD, __proto__x');
  });

  it.each<[string, object, string, RegExp]>([
    [
      chat,
      { messages: [{ role: 'user', content: [{ type: 'video', x: 1 }] }] },
      'messages[0].content[0]',
      /parts of type 'video'/,
    ],
    [chat, { messages: [{ role: 'robot', content: 'a', x: 1 }] }, 'messages[0].role', /expected one of/],
    [chat, { messages, tools: [{ type: 'retrieval', x: 1 }] }, 'tools[0].type', /function/],
    [
      '/v1/responses',
      { input: 'a', text: { format: { type: 'xml', x: 1 } } },
      'text.format.type',
      /expected one of/,
    ],
  ])(
    'does not hide that its object has a type that is not supported: %s %j',
    async (path, body, param, message) => {
      const told = await ask(path, body, withRule('refuse'));
      expect(told).toMatchObject({ status: 400, param, message: expect.stringMatching(message) });
    },
  );

  it('is told before other faults of the body', async () => {
    const body = { messages, temperature: 9, x: 1 };
    expect(await ask(chat, body, withRule('refuse'))).toMatchObject({ status: 400, param: 'x' });
  });

  it('is one of many, whose list stays short', async () => {
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`unknown_${i}`, i]));
    const { status, header } = await ask(chat, { messages, ...many });
    expect(status).toBe(200);
    expect(header!.length).toBeLessThanOrEqual(1024);
    const listed = header!.split(', ').slice(0, -1);
    expect(listed).toEqual(listed.map((_, i) => `unknown_${i}`));
    expect(header).toMatch(new RegExp(`, and ${20_000 - listed.length} more$`));
    const long = await ask(chat, { messages, ['x'.repeat(100_000)]: 1, ['\u{1f9a2}'.repeat(500)]: 1 });
    expect(long.header!.length).toBeLessThanOrEqual(1024);
  });
});

describe('a field of another server', () => {
  it.each<[string, object, string, string]>([
    [chat, { tfs_z: 0.5 }, 'tfs_z', 'this server does not have tail-free sampling.'],
    [chat, { num_predict: 5 }, 'num_predict', "use 'max_tokens'."],
    [chat, { mirostat_mode: 2 }, 'mirostat_mode', "use 'mirostat'."],
    [chat, { prompt: 'a' }, 'prompt', "use 'messages'."],
    [chat, { messages: [{ ...messages[0], images: ['a'] }] }, 'messages[0].images', 'does not have images.'],
    [
      chat,
      { messages: [...messages, { role: 'assistant', content: 'a', prefix: true }] },
      'messages[1].prefix',
      "use 'continue_final_message'.",
    ],
    ['/v1/completions', { prompt: 'a', messages }, 'messages', "use 'prompt'."],
    ['/v1/responses', { input: 'a', max_tokens: 1 }, 'max_tokens', "use 'max_output_tokens'."],
  ])('is refused where it would change the answer: %s %j', async (path, fields, param, why) => {
    for (const rule of ['refuse', 'warn', 'ignore'] as const) {
      const body = path === chat ? { messages, ...fields } : fields;
      const told = await ask(path, body, withRule(rule));
      expect(told).toMatchObject({ status: 400, param, code: 'unsupported_parameter' });
      expect(told.message).toBe(
        `'${param}' is not supported: ${why.startsWith('does') ? `this server ${why}` : why}`,
      );
    }
  });

  it('is taken where it asks for nothing, or never changes an answer', async () => {
    const fields = {
      mirostat: 0,
      mirostat_mode: 0,
      typical_p: 1,
      documents: null,
      logits_processors: [],
      cache_prompt: true,
      dry_base: 1.75,
      reasoning_effort: 'low',
      verbosity: 'low',
      prompt_cache_retention: '24h',
      service_tier: 'flex',
      store: true,
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
    };
    const said = [{ ...messages[0], images: [], weight: 1 }];
    const told = await ask(chat, { messages: said, ...fields }, withRule('refuse'));
    expect(told).toMatchObject({ status: 200, header: null });
  });
});
