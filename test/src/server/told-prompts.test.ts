import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderedCodec } from '../support/rendered-codec.js';
import { say, toyServer } from '../support/toy-server.js';

/** A template of our own with the rules of published ones, which reads all that a body may say of a prompt. */
const TEMPLATE = `{{ bos_token }}{% if tools %}<tools>{% for tool in tools %}{{ tool | tojson }}{% for name, p in tool.function.parameters.properties.items() %}{{ name + p.type }}{% endfor %}{% endfor %}</tools>{% endif %}
{%- for document in documents or [] %}D:{{ document | tojson }}{% endfor %}{{ style }}
{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('system comes first') }}{% endif %}
{{- message.role[0] | upper }}:{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function.arguments.items() | list }}</tool_call>{% endfor %};
{%- endfor %}
{%- if add_generation_prompt %}A:{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}`;

const toy = toyServer(() => say('x'), {
  model: { codec: renderedCodec(TEMPLATE), maxInputLen: 1500, maxSeqLen: 1600 },
});

const text = fc.constantFrom('', 'hi', ' a b ', '<think>x', '<think>x</think>y', 'ü');
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const parts = text.map((one) => [
  { type: 'text', text: one },
  { type: 'text', text: 'part' },
]);
const content = fc.oneof(text, parts);
const args = fc.constantFrom('', 'null', '{}', '{"a": 1.0}', null, undefined);
const calls = fc
  .array(args, { minLength: 1, maxLength: 2 })
  .map((all) =>
    all.map((one, i) => ({ id: `call_${i}`, type: 'function', function: { name: 'f', arguments: one } })),
  );
const schema = fc.constantFrom(
  { type: 'object', properties: { a: { type: 'string' } } },
  { type: 'object', properties: { a: { anyOf: [{ type: 'null' }, { type: 'integer' }] } } },
  { type: 'object', properties: {} },
);
const described = schema.map((parameters) => ({ name: 'f', description: 'd', parameters }));
const effort = fc.constantFrom('none', 'low', 'high');
const kwargs = fc.constantFrom({}, { enable_thinking: false }, { enable_thinking: true, style: 'terse' });

const message = fc.oneof(
  fc.record({ role: fc.constantFrom('system', 'developer', 'user'), content }),
  fc.record({ role: fc.constant('assistant'), content, reasoning: maybe(text) }),
  fc.record({ role: fc.constant('assistant'), content: fc.constantFrom(null, 'so'), tool_calls: calls }),
  fc.record({ role: fc.constant('tool'), content, tool_call_id: fc.constantFrom('call_0', 'call_1') }),
);
const chatBody = fc.record({
  messages: fc.array(message, { minLength: 1, maxLength: 5 }),
  tools: maybe(described.map((one) => [{ type: 'function', function: one }])),
  tool_choice: maybe(
    fc.constantFrom('none', 'auto', 'required', { type: 'function', function: { name: 'f' } }),
  ),
  parallel_tool_calls: maybe(fc.boolean()),
  functions: fc.option(
    described.map((one) => [one]),
    { nil: undefined, freq: 1 },
  ),
  response_format: maybe(fc.constant({ type: 'json_object' })),
  reasoning_effort: maybe(effort),
  chat_template_kwargs: maybe(kwargs),
  documents: maybe(fc.constant([{ title: 't', text: 'x' }])),
  continue_final_message: maybe(fc.boolean()),
  add_generation_prompt: maybe(fc.boolean()),
  add_special_tokens: maybe(fc.boolean()),
  truncate_prompt_tokens: maybe(fc.constantFrom(-1, 7, 300)),
  max_tokens: maybe(fc.constantFrom(5, 1400)),
  temperature: maybe(fc.constant(0.5)),
});

async function answered(
  path: string,
  body: object,
): Promise<{ status: number; json: Record<string, never> }> {
  const response = await toy.post(path, body);
  return { status: response.status, json: (await response.json()) as Record<string, never> };
}

const RUNS = 50;
/** Fewest bodies that have to be taken, so that the property says something. */
const TAKEN = RUNS / 4;

describe('what is told of a prompt is what is computed', () => {
  it('for chats', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(chatBody, async (body) => {
        const chat = await answered('/v1/chat/completions', { ...body, return_token_ids: true });
        const [render, tokenize, apply] = [
          await answered('/v1/chat/completions/render', body),
          await answered('/tokenize', body),
          await answered('/apply-template', body),
        ];
        if (chat.status !== 200) return;
        taken++;
        const ids: number[] = chat.json.prompt_token_ids!;
        expect([render.status, tokenize.status, apply.status]).toEqual([200, 200, 200]);
        expect(render.json.token_ids).toEqual(ids);
        expect(tokenize.json.tokens).toEqual(ids);
        expect(await answered('/detokenize', { tokens: ids })).toEqual(apply);
      }),
      { numRuns: RUNS },
    );
    expect(taken).toBeGreaterThan(TAKEN);
  });

  it('for completions', async () => {
    const prompt = fc.oneof(
      text,
      fc.constant([1, 2, 3]),
      fc.constant(['a', 'bc']),
      fc.constant([[1], [2, 3]]),
    );
    const body = fc.record({
      prompt,
      add_special_tokens: maybe(fc.boolean()),
      truncate_prompt_tokens: maybe(fc.constantFrom(-1, 1, 2)),
      max_tokens: maybe(fc.constantFrom(5, 9)),
      echo: maybe(fc.boolean()),
    });
    await fc.assert(
      fc.asyncProperty(body, async (asked) => {
        const answer = await answered('/v1/completions', { ...asked, return_token_ids: true });
        const told = await answered('/v1/completions/render', asked);
        if (answer.status !== 200) return;
        expect(told.status).toBe(200);
        const ids = (answer.json.choices! as { prompt_token_ids: number[] }[]).map(
          (one) => one.prompt_token_ids,
        );
        expect((told.json as unknown as { token_ids: number[] }[]).map((one) => one.token_ids)).toEqual(ids);
        if (typeof asked.prompt !== 'string' || asked.echo) return;
        expect((await answered('/tokenize', asked)).json.tokens).toEqual(ids[0]);
      }),
      { numRuns: RUNS },
    );
  });

  it("for Anthropic's messages", async () => {
    const thinking = text.map((one) => ({ type: 'thinking', thinking: one, signature: '' }));
    const said = text.map((one) => ({ type: 'text', text: one }));
    const used = fc.constant({ type: 'tool_use', id: 'a', name: 'f', input: {} });
    const result = fc.constant({ type: 'tool_result', tool_use_id: 'a', content: 'r' });
    const several = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 3 });
    const body = fc.record({
      messages: fc.array(
        fc.oneof(
          fc.record({ role: fc.constant('user'), content: fc.oneof(text, several(fc.oneof(said, result))) }),
          fc.record({
            role: fc.constant('assistant'),
            content: fc.oneof(text, several(fc.oneof(said, thinking, used))),
          }),
          fc.record({ role: fc.constant('system'), content: text }),
        ),
        { minLength: 1, maxLength: 5 },
      ),
      system: maybe(text),
      tools: maybe(described.map(({ parameters, ...rest }) => [{ ...rest, input_schema: parameters }])),
      tool_choice: maybe(fc.constantFrom({ type: 'auto' }, { type: 'any' }, { type: 'none' })),
      thinking: maybe(fc.constantFrom({ type: 'enabled', budget_tokens: null }, { type: 'disabled' })),
      output_config: maybe(effort.map((one) => ({ effort: one }))),
      chat_template_kwargs: maybe(kwargs),
    });
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(body, async (asked) => {
        const answer = await answered('/v1/messages', { ...asked, max_tokens: 5 });
        const told = await answered('/v1/messages/count_tokens', asked);
        if (answer.status !== 200) return;
        taken++;
        const usage: { input_tokens: number; cache_read_input_tokens: number } = answer.json.usage!;
        expect(told.json.input_tokens).toBe(usage.input_tokens + usage.cache_read_input_tokens);
      }),
      { numRuns: RUNS },
    );
    expect(taken).toBeGreaterThan(TAKEN);
  });

  it('for responses', async () => {
    const item = fc.oneof(
      fc.record({ role: fc.constantFrom('system', 'developer', 'user', 'assistant'), content: text }),
      fc.constant({ type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }),
      fc.constant({ type: 'function_call_output', call_id: 'a', output: 'r' }),
      fc.constant({ role: 'user', content: 'long '.repeat(200) }),
    );
    const body = fc.record({
      input: fc.oneof(text, fc.array(item, { minLength: 1, maxLength: 5 })),
      instructions: maybe(text),
      tools: maybe(described.map((one) => [{ type: 'function', ...one }])),
      tool_choice: maybe(fc.constantFrom('none', 'auto', 'required')),
      reasoning: maybe(fc.record({ effort })),
      truncation: maybe(fc.constantFrom('auto', 'disabled')),
      max_output_tokens: maybe(fc.constantFrom(16, 900)),
      chat_template_kwargs: maybe(kwargs),
    });
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(body, async (asked) => {
        const answer = await answered('/v1/responses', asked);
        const told = await answered('/v1/responses/input_tokens', asked);
        if (answer.status !== 200) return;
        taken++;
        expect(told.json.input_tokens).toBe((answer.json.usage! as { input_tokens: number }).input_tokens);
      }),
      { numRuns: RUNS },
    );
    expect(taken).toBeGreaterThan(TAKEN);
  });
});
