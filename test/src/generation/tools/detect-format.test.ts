import { describe, expect, it } from 'vitest';
import { CALLS_BEGIN } from '../../../../src/generation/tools/deepseek-parser.js';
import { mentions, toolStyle } from '../../../../src/generation/tools/detect-format.js';
import type { ToolFormatName } from '../../../../src/generation/tools/types.js';

const TOOLS = '{% for tool in tools %}{{ tool }}{% endfor %}';

describe('the format of calls', () => {
  it.each<[ToolFormatName, string]>([
    ['gemma4', `${TOOLS}<|tool_call>call:`],
    ['mistral', `${TOOLS}[TOOL_CALLS]`],
    ['deepseek_v3', `${TOOLS}${CALLS_BEGIN}`],
    ['qwen3_coder', `${TOOLS}<tool_call><function=`],
    ['hermes', `${TOOLS}<tool_call>`],
    ['pythonic', `${TOOLS}[func_name1(a=1)]`],
    ['pythonic', `${TOOLS}<|python_start|>`],
    ['llama3_json', `${TOOLS}<|start_header_id|>{"name": "x", "parameters": {}}`],
  ])('%s is known by the template', (format, source) => {
    expect(toolStyle(source, 'auto')).toEqual({ format, usesTemplate: true });
    // The operator's choice comes first.
    expect(toolStyle(source, 'harmony')).toEqual({ format: 'harmony', usesTemplate: true });
  });

  it.each([
    ['is missing', null],
    ['knows no functions', '<tool_call>{{ messages }}'],
    ['writes calls in an unknown way', TOOLS],
  ])('is that of Hermes, without the template, where the template %s', (_, source) => {
    expect(toolStyle(source, 'auto')).toEqual({ format: 'hermes', usesTemplate: false });
  });

  it('that is chosen does not need a template that knows functions', () => {
    expect(toolStyle('{{ messages }}', 'mistral')).toEqual({ format: 'mistral', usesTemplate: false });
    expect(toolStyle(null, 'mistral')).toEqual({ format: 'mistral', usesTemplate: false });
  });
});

describe('a variable of a template', () => {
  it.each<[string, boolean]>([
    ['{{ tools }}', true],
    ['{%- if tools is defined -%}x{%- endif -%}', true],
    ['{{ a }} text {% set b = 1 %} text {{ tools|tojson }}', true],
    ['{% if a %}{{ b }}{% endif %}{% for c in tools %}', true],
    ['tools', false],
    ['{{ a }} tools {{ b }}', false],
    ["{{ 'tools' }}", false],
    ['{{ "tools" }}', false],
    ['{{ message.tools }}', false],
    ['{{ my_tools }}', false],
    ['{{ toolset }}', false],
    // Without an end there is no expression.
    ['{{ tools', false],
    ['{{ a {% tools %}', true],
    ['{% a {{ tools }}', true],
    ['{{ a }} {{ b %} tools', false],
  ])('in %s: %s', (source, isUsed) => {
    expect(mentions(source, 'tools')).toBe(isUsed);
  });

  it('is found in any of many templates, again and again', () => {
    const sources = Array.from({ length: 20 }, (_, i) => `{{ tools${i} }}`);
    for (let round = 0; round < 2; round++)
      for (const [i, source] of sources.entries()) {
        expect(mentions(source, `tools${i}`)).toBe(true);
        expect(mentions(source, `tools${i + 1}`)).toBe(false);
      }
  });
});
