import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import { bytesOf, templatedCodec } from '../../support/toy-codec.js';
import { readChunks, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'hi' }];
const TEMPLATE =
  "{{ messages }}{% if enable_thinking is defined %}{% endif %}{{ content.split('</think>') }}";

interface Part {
  content?: string | null;
  reasoning?: string;
  reasoning_content?: string;
  role?: string;
}
interface Answer {
  choices: { message: Part; delta: Part; finish_reason: string | null }[];
  usage: { completion_tokens_details?: { reasoning_tokens: number } };
  error?: { param: string; message: string };
}

function server(text: string, options: { template?: string; reasoningParser?: 'none' | 'deepseek_r1' } = {}) {
  const seen: TokenRequest[] = [];
  const { template = TEMPLATE, ...model } = options;
  const toy = toyServer(
    (request) => {
      seen.push(request);
      return [...bytesOf(text).map((token) => ({ tokens: [token] })), { finish: 'stop' as const }];
    },
    { model: { codec: templatedCodec(template), ...model } },
  );
  const post = (fields: object) => toy.post('/v1/chat/completions', { messages, ...fields });
  return { seen, post, ask: async (fields: object) => (await (await post(fields)).json()) as Answer };
}

describe('reasoning text', () => {
  const text = '<think>\nHm.\n</think>\n\nYes.';

  it('comes apart from the answer, under both names, and is counted', async () => {
    const answer = await server(text).ask({});
    expect(answer.choices[0]!.message).toEqual({
      role: 'assistant',
      content: 'Yes.',
      refusal: null,
      reasoning: 'Hm.',
      reasoning_content: 'Hm.',
    });
    expect(answer.usage.completion_tokens_details).toEqual({
      reasoning_tokens: bytesOf('<think>\nHm.\n</think>').length,
    });
  });

  it('is streamed under both names', async () => {
    const response = await server(text).post({ stream: true, stream_options: { include_usage: true } });
    const chunks = await readChunks<Answer>(response);
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    for (const key of ['reasoning', 'reasoning_content'] as const) {
      expect(deltas.map((delta) => delta[key] ?? '').join('')).toBe('Hm.');
    }
    expect(deltas.map((delta) => delta.content ?? '').join('')).toBe('Yes.');
    expect(chunks.at(-1)!.usage.completion_tokens_details!.reasoning_tokens).toBe(20);
  });

  it('is left out where it is not wanted, and counted all the same', async () => {
    const whole = await server(text).ask({ include_reasoning: false });
    expect(whole.choices[0]!.message).toEqual({ role: 'assistant', content: 'Yes.', refusal: null });
    expect(whole.usage.completion_tokens_details).toEqual({ reasoning_tokens: 20 });
    const response = await server(text).post({ include_reasoning: false, stream: true });
    const chunks = await readChunks<Answer>(response);
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    expect(deltas.flatMap((delta) => Object.keys(delta))).not.toContain('reasoning');
    expect(deltas.map((delta) => delta.content ?? '').join('')).toBe('Yes.');
    const shown = await server(text).ask({ include_reasoning: true });
    expect(shown.choices[0]!.message).toMatchObject({ content: 'Yes.', reasoning: 'Hm.' });
  });

  it('is found where the prompt has opened it, and not where the prompt has closed it', async () => {
    const { ask } = server('Hm.</think>Yes.');
    const open = {
      messages: [...messages, { role: 'assistant', content: 'So <think>' }],
      continue_final_message: true,
    };
    expect((await ask(open)).choices[0]!.message).toMatchObject({ content: 'Yes.', reasoning: 'Hm.' });
    const closed = {
      messages: [...messages, { role: 'assistant', content: '<think></think>' }],
      continue_final_message: true,
    };
    expect((await ask(closed)).choices[0]!.message).toMatchObject({ content: 'Hm.</think>Yes.' });
  });

  it('is left alone where the model does not reason, or the operator says so', async () => {
    for (const options of [{ template: '{{ messages }}' }, { reasoningParser: 'none' as const }]) {
      const answer = await server(text, options).ask({});
      expect(answer.choices[0]!.message).toEqual({ role: 'assistant', content: text, refusal: null });
      expect(answer.usage.completion_tokens_details).toBeUndefined();
    }
  });

  it('of earlier answers reaches the template, under either name', async () => {
    for (const name of ['reasoning', 'reasoning_content']) {
      const rendered: object[] = [];
      const codec = {
        ...templatedCodec(TEMPLATE),
        encodeChat: (list: readonly object[]) => {
          rendered.push(...list);
          return [1];
        },
      };
      const toy = toyServer(() => [{ tokens: [65] }, { finish: 'stop' }], { model: { codec } });
      await toy.post('/v1/chat/completions', {
        messages: [...messages, { role: 'assistant', content: 'a', [name]: 'Hm.' }],
      });
      expect(rendered[1]).toEqual({ role: 'assistant', content: 'a', reasoning_content: 'Hm.' });
    }
  });

  it('needs no marker with deepseek_r1', async () => {
    const answer = await server('Hm.</think>Yes.', { reasoningParser: 'deepseek_r1' }).ask({});
    expect(answer.choices[0]!.message).toMatchObject({ content: 'Yes.', reasoning: 'Hm.' });
  });

  it('stands before what a guide is for', async () => {
    const { ask, seen } = server(text);
    await ask({ response_format: { type: 'json_object' } });
    const guide = JSON.parse(seen[0]!.guide!.guide) as { format: { type: string; elements: object[] } };
    expect(seen[0]!.guide!.type).toBe('structural_tag');
    expect(guide.format.type).toBe('or');
    expect(JSON.stringify(guide.format.elements[0])).toContain('</think>');
    expect(guide.format.elements[1]).toEqual({ type: 'json_schema', json_schema: { type: 'object' } });
  });

  it.each<[object, string | null]>([
    [{ reasoning_effort: 'none' }, null],
    [{ reasoning_effort: 'high' }, null],
    [{ chat_template_kwargs: { enable_thinking: false } }, null],
    [{ chat_template_kwargs: { thinking: true } }, 'chat_template_kwargs.thinking'],
  ])('%j is honoured or refused by name: %s', async (fields, param) => {
    const answer = await server(text).ask(fields);
    expect(answer.error?.param ?? null).toBe(param);
  });

  it('is turned on or off by the effort where the template has only a switch', async () => {
    const variables: unknown[] = [];
    const codec = {
      ...templatedCodec(TEMPLATE),
      encodeChat: (_: unknown, options: { variables?: unknown }) => {
        variables.push(options.variables);
        return [1];
      },
    };
    const toy = toyServer(() => [{ finish: 'stop' }], { model: { codec } });
    for (const reasoning_effort of ['low', 'none'])
      await toy.post('/v1/chat/completions', { messages, reasoning_effort });
    expect(variables).toEqual([{ enable_thinking: true }, { enable_thinking: false }]);
  });

  it('cannot be turned off where the model reasons always', async () => {
    const { ask } = server(text, { template: '{{ messages }}<think></think>' });
    expect((await ask({ reasoning_effort: 'none' })).error?.param).toBe('reasoning_effort');
    expect((await ask({ reasoning_effort: 'high' })).error).toBeUndefined();
  });

  it('takes the effort where the template has it', async () => {
    const { ask } = server('x', { template: '{{ reasoning_effort }}' });
    expect((await ask({ reasoning_effort: 'high' })).error).toBeUndefined();
  });
});

describe('a budget of reasoning', () => {
  /** A codec whose vocabulary has a token for each marker. */
  function markedCodec(template = TEMPLATE) {
    const codec = templatedCodec(template);
    const encodePiece = (text: string) => {
      const marker = ['<think>', '</think>'].indexOf(text);
      return marker < 0 ? bytesOf(text) : [200 + marker];
    };
    return { ...codec, encodePiece };
  }

  async function budgetOf(fields: object, template?: string) {
    const requests: TokenRequest[] = [];
    const toy = toyServer(
      (request) => {
        requests.push(request);
        return [{ finish: 'stop' }];
      },
      { model: { codec: markedCodec(template) } },
    );
    const response = await toy.post('/v1/chat/completions', { messages, ...fields });
    expect(response.status).toBe(200);
    return requests[0]!.reasoningBudget;
  }

  it.each(['thinking_token_budget', 'thinking_budget', 'thinking_budget_tokens'])(
    '%s reaches the engine with the tokens of the markers',
    async (name) => {
      expect(await budgetOf({ [name]: 5 })).toEqual({ tokens: 5, endToken: 201, beginToken: 200 });
      expect(await budgetOf({ [name]: 0 })).toMatchObject({ tokens: 0 });
      expect(await budgetOf({ [name]: -1 })).toBe(undefined);
      expect(await budgetOf({ [name]: null })).toBe(undefined);
    },
  );

  it('counts from the beginning where the prompt has opened the reasoning', async () => {
    const open = {
      messages: [...messages, { role: 'assistant', content: 'So <think>' }],
      continue_final_message: true,
    };
    expect(await budgetOf({ ...open, thinking_token_budget: 5 })).toEqual({ tokens: 5, endToken: 201 });
  });

  it('is no matter to a model that does not reason', async () => {
    expect(await budgetOf({ thinking_token_budget: 5 }, '{{ messages }}')).toBe(undefined);
  });

  it('is refused under two names, and by a model without a token for the end', async () => {
    const toy = server('x');
    const twice = await toy.ask({ thinking_token_budget: 5, thinking_budget: 6 });
    expect(twice.error).toMatchObject({ param: 'thinking_budget' });
    const marks = await toy.ask({ thinking_token_budget: 5 });
    expect(marks.error).toMatchObject({
      param: 'thinking_token_budget',
      message: expect.stringContaining('8 tokens'),
    });
  });
});
