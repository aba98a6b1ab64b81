import { describe, expect, it } from 'vitest';
import { promptText, renderedCodec } from '../support/rendered-codec.js';
import { say, toyServer } from '../support/toy-server.js';

/** Shows what a template is given, as Python writes it. */
const TEMPLATE = `{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}{{ [big, whole, small, nested] }}{{ documents }}{% if enable_thinking %}{% endif %}
{%- for message in messages %}{{ message.content or '' }}{% for call in message.tool_calls or [] %}<tool_call>{{ call.function.arguments }}</tool_call>{% endfor %}{% endfor %}`;

const toy = toyServer(() => say('x'), {
  model: { codec: renderedCodec(TEMPLATE), maxInputLen: 5000, maxSeqLen: 6000 },
});

/** Numbers that JavaScript would write otherwise, and what Python writes. */
const NUMBERS = '{"a": 12345678901234567890, "b": 1.0, "c": 1e-07, "10": [1e2], "2": -0.0}';
const AS_PYTHON = "{'a': 12345678901234567890, 'b': 1.0, 'c': 1e-07, '10': [100.0], '2': -0.0}";
const VARIABLES = `{"big": 12345678901234567890, "whole": 2.0, "small": 1e-07, "nested": ${NUMBERS}}`;
const VARIABLES_AS_PYTHON = `[12345678901234567890, 2.0, 1e-07, ${AS_PYTHON}]`;
const PARAMETERS =
  '{"type": "object", "properties": {"x": {"minimum": 1.0, "maximum": 12345678901234567890}}}';

async function prompt(path: string, body: string): Promise<string> {
  const response = await toy.post(path, body);
  expect(response.status, await response.text()).toBe(200);
  return promptText(toy.engine.requests.at(-1)!.promptTokens);
}

describe('numbers of a request reach the template as they were written', () => {
  it('in variables, documents, functions and calls of chats', async () => {
    const call = `{"id": "a", "type": "function", "function": {"name": "f", "arguments": ${JSON.stringify(NUMBERS)}}}`;
    const messages = `[{"role": "user", "content": "hi"}, {"role": "assistant", "content": null, "tool_calls": [${call}]}, {"role": "tool", "tool_call_id": "a", "content": "r"}]`;
    const tools = `[{"type": "function", "function": {"name": "f", "parameters": ${PARAMETERS}}}]`;
    for (const effort of ['', ', "reasoning_effort": "high"']) {
      const body = `{"messages": ${messages}, "tools": ${tools}, "documents": [{"n": "x"}], "chat_template_kwargs": ${VARIABLES}${effort}}`;
      const text = await prompt('/v1/chat/completions', body);
      expect(text).toContain(VARIABLES_AS_PYTHON);
      expect(text).toContain("[{'n': 'x'}]");
      expect(text).toContain(`<tool_call>${AS_PYTHON}</tool_call>`);
      expect(text).toContain(PARAMETERS);
      const rendered = await toy.post('/apply-template', body);
      expect(await rendered.json()).toEqual({ prompt: text });
    }
  });

  it("in variables, functions and calls of Anthropic's messages, responses and Ollama's chats", async () => {
    const used = `{"type": "tool_use", "id": "a", "name": "f", "input": ${NUMBERS}}`;
    const result = '{"type": "tool_result", "tool_use_id": "a", "content": "r"}';
    const anthropic = `{"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [${used}]}, {"role": "user", "content": [${result}]}], "tools": [{"name": "f", "input_schema": ${PARAMETERS}}], "chat_template_kwargs": ${VARIABLES}}`;
    const call = `{"type": "function_call", "call_id": "a", "name": "f", "arguments": ${JSON.stringify(NUMBERS)}}`;
    const output = '{"type": "function_call_output", "call_id": "a", "output": "r"}';
    const responses = `{"input": [{"role": "user", "content": "hi"}, ${call}, ${output}], "tools": [{"type": "function", "name": "f", "parameters": ${PARAMETERS}}], "chat_template_kwargs": ${VARIABLES}}`;
    for (const [path, body] of [
      ['/v1/messages', anthropic],
      ['/v1/responses', responses],
    ] as const) {
      const text = await prompt(path, body);
      expect(text, path).toContain(VARIABLES_AS_PYTHON);
      expect(text, path).toContain(`<tool_call>${AS_PYTHON}</tool_call>`);
      expect(text, path).toContain(PARAMETERS);
    }
    const ollama = `{"model": "toy", "stream": false, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": ${NUMBERS}}}]}, {"role": "tool", "content": "r"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": ${PARAMETERS}}}]}`;
    const text = await prompt('/api/chat', ollama);
    expect(text).toContain(`<tool_call>${AS_PYTHON}</tool_call>`);
    expect(text).toContain(PARAMETERS);
  });
});
