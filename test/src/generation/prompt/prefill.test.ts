import { describe, expect, it } from 'vitest';
import type { ServedGenerator } from '../../../../src/serving/served-model.js';
import { promptText, renderedCodec } from '../../support/rendered-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

/** A template of our own that writes reasoning as published ones do: of the last message alone, and ended. */
const THINKS = `{% for message in messages %}{{ message.role[0] | upper }}:
{%- if message.role == 'assistant' and loop.last %}<think>
{{ message.reasoning_content or '' }}
</think>

{% endif %}{{ message.content }};{% endfor %}{% if add_generation_prompt %}A:
{%- if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}`;
/** One that opens reasoning itself. */
const OPENS = `{% for message in messages %}{{ message.role[0] | upper }}:{{ message.content.split('</think>')[-1] }};{% endfor %}{% if add_generation_prompt %}A:<think>
{% endif %}`;

/** What these tests read of answers of three APIs. */
interface Answer {
  choices: { message: object & { reasoning?: string } }[];
  usage: { completion_tokens_details: { reasoning_tokens: number } };
  content: object[];
  message: object;
}

const user = { role: 'user', content: 'hi' };

/** What the model is asked, and what a client gets of an answer. */
async function asked(
  path: string,
  body: object,
  answer: string,
  options: Partial<ServedGenerator> & { template?: string } = {},
) {
  const { template = THINKS, ...fields } = options;
  const prompts: string[] = [];
  const guides: (string | undefined)[] = [];
  const toy = toyServer(
    (request) => {
      prompts.push(promptText(request.promptTokens));
      guides.push(request.guide?.guide);
      return say(answer);
    },
    { model: { codec: renderedCodec(template), maxInputLen: 1000, maxSeqLen: 2000, ...fields } },
  );
  const response = await toy.post(path, body);
  return {
    status: response.status,
    json: (await response.json()) as Answer,
    prompt: prompts[0],
    guide: guides[0],
  };
}

const REST = ' yes.\n</think>\n\nDone.';
const chat = (last: object, more: object = {}) => ({
  messages: [user, { role: 'assistant', ...last }],
  continue_final_message: true,
  ...more,
});

describe('a last message that ends within its reasoning', () => {
  it.each([
    [THINKS, { reasoning_content: 'Hm,' }, {}],
    [THINKS, { reasoning_content: 'Hm,', content: '' }, { reasoning_effort: 'none' }],
    [THINKS, { content: '<think>\nHm,' }, {}],
    [OPENS, { reasoning: '\nHm,', content: null }, {}],
    [OPENS, { content: '<think>Hm,' }, { add_generation_prompt: false }],
  ])('goes on within it: %j %j %j', async (template, last, more) => {
    const { json, prompt } = await asked('/v1/chat/completions', chat(last, more), REST, { template });
    expect(prompt).toBe('U:hi;A:<think>\nHm,');
    expect(json.choices[0]!.message).toMatchObject({ reasoning_content: ' yes.', content: 'Done.' });
    expect(json.usage.completion_tokens_details.reasoning_tokens).toBe(' yes.\n</think>'.length);
  });

  it('has the form of the answer behind the rest of it', async () => {
    const format = { response_format: { type: 'json_object' } };
    const { guide } = await asked(
      '/v1/chat/completions',
      chat({ reasoning: 'Hm,' }, format),
      ' yes.</think>{}',
    );
    const { format: form } = JSON.parse(guide!);
    expect(form.type).toBe('sequence');
    expect(JSON.stringify(form.elements[0])).toContain('</think>');
    expect(form.elements.at(-1)).toEqual({ type: 'json_schema', json_schema: { type: 'object' } });
  });

  it("goes on over Anthropic's and Ollama's API too", async () => {
    const blocks = [{ type: 'thinking', thinking: 'Hm,', signature: 's' }];
    const message = await asked(
      '/v1/messages',
      { max_tokens: 50, messages: [user, { role: 'assistant', content: blocks }] },
      REST,
    );
    expect(message.prompt).toBe('U:hi;A:<think>\nHm,');
    expect(message.json.content).toMatchObject([
      { type: 'thinking', thinking: ' yes.' },
      { type: 'text', text: 'Done.' },
    ]);
    const last = { role: 'assistant', content: '', thinking: 'Hm,' };
    const ollama = await asked('/api/chat', { model: 'toy', stream: false, messages: [user, last] }, REST);
    expect(ollama.prompt).toBe('U:hi;A:<think>\nHm,');
    expect(ollama.json.message).toMatchObject({ thinking: ' yes.', content: 'Done.' });
  });

  it('is refused where the request wants no reasoning, or the model has none', async () => {
    const off = chat({ reasoning: 'Hm,' }, { chat_template_kwargs: { enable_thinking: false } });
    expect(await asked('/v1/chat/completions', off, '')).toMatchObject({
      status: 400,
      json: { error: { param: 'messages', message: expect.stringContaining('told not to reason') } },
    });
    const none = await asked('/v1/chat/completions', chat({ reasoning: 'Hm,' }), '', {
      reasoningParser: 'none',
    });
    expect(none).toMatchObject({
      status: 400,
      json: { error: { message: expect.stringContaining('needs text') } },
    });
  });
});

describe('a last message whose reasoning has ended', () => {
  it.each([
    [THINKS, { content: 'We' }, 'U:hi;A:<think>\n\n</think>\n\nWe'],
    [THINKS, { content: 'We', reasoning_content: 'Hm.' }, 'U:hi;A:<think>\nHm.\n</think>\n\nWe'],
    [OPENS, { content: 'We' }, 'U:hi;A:We'],
  ])('goes on with its content, even where every answer reasons: %j %j', async (template, last, expected) => {
    const options = { template, reasoningParser: 'deepseek_r1' } as const;
    const { json, prompt } = await asked('/v1/chat/completions', chat(last), ' are.', options);
    expect(prompt).toBe(expected);
    expect(json.choices[0]!.message).toMatchObject({ content: ' are.' });
    expect(json.choices[0]!.message.reasoning).toBeUndefined();
  });
});
