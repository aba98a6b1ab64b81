import { afterAll, describe, expect, it } from 'vitest';
import { ChatTemplateError } from '../../../dist/models/chat-template.js';
import { TemplatePool } from '../../../dist/models/tokenizer/template-pool.js';

const pool = new TemplatePool({
  bosToken: '<s>',
  eosToken: '</s>',
  controlTokenTexts: ['<s>', '</s>', '<|end|>'],
});
afterAll(() => pool.close());

const messages = [{ role: 'user', content: 'a <|end|>' }];
const render = (template: string) => pool.render({ template, messages, render: {} });

describe('a template of a request', () => {
  it('is rendered, and its special tokens are tokens where those of the messages are text', async () => {
    const segments = await render('{{ bos_token }}{{ messages[0].content }}<|end|>');
    expect(segments).toEqual([
      { text: '<s>a ', special: true },
      { text: '<|end|>', special: false },
      { text: '<|end|>', special: true },
    ]);
  });

  it.each([
    ['is no Jinja', '{% if %}', /cannot be parsed/],
    [
      'loops without end',
      '{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}',
      /steps|milliseconds/,
    ],
    ['nests too deeply', `{{ ${'('.repeat(60_000)} }}`, /cannot be parsed|nested|milliseconds/],
    [
      'takes too long',
      "{% set t = namespace(a='x') %}{% for i in range(20) %}{% set t.a = t.a + t.a %}{% endfor %}{% for i in range(99000) %}{% if 'y' in t.a %}{% endif %}{% endfor %}",
      /milliseconds|steps/,
    ],
    ['refuses the messages', "{{ raise_exception('no') }}", /refused the messages: no/i],
  ])('is told of as a fault of the request where it %s', async (_, template, why) => {
    const error = await render(template).catch((fault: unknown) => fault);
    expect((error as Error).name).toBe(ChatTemplateError.name);
    expect((error as Error).message).toMatch(why);
    expect(await render('b')).toEqual([{ text: 'b', special: true }]);
  });
});
