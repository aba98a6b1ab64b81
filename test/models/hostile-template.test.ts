import { describe, expect, it } from 'vitest';
import { ChatTemplate, MAX_TEMPLATE_STEPS } from '../../models/chat-template.js';

const tokenizer = {
  bosToken: null,
  eosToken: null,
  specialTokenTexts: ['<|im_end|>'],
  controlTokenTexts: ['<|im_end|>'],
};
const render = (source: string, count = 1, templateKwargs = {}) =>
  new ChatTemplate(source, tokenizer).render(
    Array.from({ length: count }, (_, i) => ({ role: 'user', content: `turn ${i}` })),
    { templateKwargs },
  ).text;

describe('a template that would not end', () => {
  it.each([
    ['loops in loops', '{% for a in range(50000) %}{% for b in range(50000) %}x{% endfor %}{% endfor %}'],
    ['a macro that calls itself', '{% macro m(a) %}{{ m(a) }}{{ m(a) }}{% endmacro %}{{ m(1) }}'],
    ['numbers without an end', '{% for a in range(999999999999) %}x{% endfor %}'],
    ['numbers of the client', '{% for a in range(n) %}x{% endfor %}'],
  ])('is given up, as the fault of the request: %s', (_, source) => {
    const refusal = /^The chat template refused the messages: /;
    expect(() => render(source, 1, { n: 1e12 })).toThrow(
      expect.objectContaining({ name: 'ChatTemplateError', message: expect.stringMatching(refusal) }),
    );
  });

  it('is told from a conversation that is long', () => {
    const source = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] | trim + '\\n' }}{% endfor %}";
    expect(render(source, 10_000).split('\n')).toHaveLength(10_001);
    expect(MAX_TEMPLATE_STEPS).toBeGreaterThanOrEqual(10_000 * 50);
  });
});

describe('variables of the client', () => {
  it('are text and data, and nothing of the process', () => {
    const source =
      '{{ process }}{{ constructor }}{{ x.constructor }}{{ messages.constructor }}{{ x.__proto__ }}';
    expect(render(source, 1, JSON.parse('{"x":{"a":1},"__proto__":{"process":"leaked"}}'))).toBe('');
    expect(({} as { process?: unknown }).process).toBe(undefined);
  });
});
