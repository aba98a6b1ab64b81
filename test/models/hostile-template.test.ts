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

const DOUBLES = (sign: string) =>
  `{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ${sign} n.x %}{% endfor %}{{ n.x }}`;

describe('a template that would not end', () => {
  it.each([
    ['loops in loops', '{% for a in range(50000) %}{% for b in range(50000) %}x{% endfor %}{% endfor %}'],
    ['a macro that calls itself', '{% macro m(a) %}{{ m(a) }}{{ m(a) }}{% endmacro %}{{ m(1) }}'],
    ['numbers without an end', '{% for a in range(999999999999) %}x{% endfor %}'],
    ['numbers of the client', '{% for a in range(n) %}x{% endfor %}'],
    ['a text that doubles', DOUBLES('~')],
    ['a text that doubles by addition', DOUBLES('+')],
    [
      'a list that doubles',
      '{% set n = namespace(x=[1, 2]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x | length }}',
    ],
    [
      'a text out of replacements',
      "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = n.x.replace('a', 'aaaaaaaa') %}{% endfor %}{{ n.x }}",
    ],
    ['a text times a number', "{{ 'x' * 1000000000 }}"],
    ['a wide indentation', "{{ 'a\nb' | indent(1000000000) }}"],
    ['a wide indentation by name', "{{ 'a\nb' | indent(width=1000000000) }}"],
    ['a wide indentation of JSON', '{{ messages | tojson(indent=1000000000) }}'],
    ['a macro without an end', '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}'],
    ['deep brackets', `{{ ${'('.repeat(20_000)}1${')'.repeat(20_000)} }}`],
  ])('is given up, as the fault of the request: %s', (_, source) => {
    const refusal = /^The (chat template refused the messages|chat template cannot be parsed): /;
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

describe('a rendering that should be quick', () => {
  const messages = [{ role: 'user', content: 'long '.repeat(2000) }];
  const quick = (source: string) => new ChatTemplate(source, tokenizer).renderWithin(20_000, messages, {});

  it('is left to others where a step may do the work of many', () => {
    expect(quick("{{ messages[0].content.replace('l', messages[0].content) }}")).toBe(null);
    expect(quick("{{ messages[0].content | replace('l', messages[0].content) }}")).toBe(null);
    expect(quick('{{ messages[0].content | join(messages[0].content) }}')).toBe(null);
  });

  it('is what it always was otherwise', () => {
    const source =
      "{{ messages[0].content | trim }}{{ 'a-b'.replace('-', '+') }}{{ ['x', 'y'] | join(', ') }}";
    const rendered = quick(source);
    expect(rendered?.text).toBe(`${messages[0]!.content.trim()}a+bx, y`);
    expect(rendered).toEqual(new ChatTemplate(source, tokenizer).render(messages));
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
