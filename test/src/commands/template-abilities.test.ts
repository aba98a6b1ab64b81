import { describe, expect, it } from 'vitest';
import { templateAbilities } from '../../../src/commands/template-abilities.js';

const of = (chatTemplate: string | null, namedTemplates?: Record<string, string>) =>
  templateAbilities({ chatTemplate, ...(namedTemplates && { namedTemplates }) });

describe('the abilities of a chat template', () => {
  it('are none without one', () => expect(of(null)).toBeNull());

  it('are those by which chats use it', () => {
    expect(of('{% for m in messages %}{{ m.content }}{% endfor %}')).toEqual({
      problem: null,
      tools: null,
      reasoning: null,
      reasoningSwitch: null,
      readsParts: false,
      others: [],
    });
    const able =
      '{% if tools %}<tool_call>{% endif %}{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}' +
      '{% if enable_thinking %}<think>{% else %}</think>{% endif %}';
    expect(of(able)).toMatchObject({
      tools: 'hermes',
      reasoning: 'qwen3',
      reasoningSwitch: 'enable_thinking',
      readsParts: true,
    });
  });

  it('are of the template for functions where there is one', () => {
    const both = of('{{ messages }}', { tool_use: '{% if tools %}[TOOL_CALLS]{% endif %}', rag: '' });
    expect(both).toMatchObject({ tools: 'mistral', others: ['tool_use', 'rag'] });
  });

  it('say what is wrong with one that is none', () => {
    expect(of('{% for %}')!.problem).toMatch(/^cannot be read: .+/);
  });
});
