import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ChatMessage, ChatTemplate, type RenderOptions } from '../../models/chat-template.js';
import { KnownToolLists } from '../../models/known-tools.js';
import { draws } from '../support/scale.js';

const tokens = {
  bosToken: '<s>',
  eosToken: '</s>',
  controlTokenTexts: ['<|im_start|>', '<|im_end|>', '<s>', '</s>', '[TOOLS]'],
};

/** Ways in which templates write functions: as JSON in several forms, name by name, or into variables. */
const TEMPLATES = [
  '{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{{ messages[0].content }}<|im_end|>',
  '{{ tools | tojson }}|{{ tools | tojson(indent=2) }}|{{ tools | tojson(indent=4, sort_keys=true) }}',
  "{{ tools | tojson(ensure_ascii=False) }}{% set ascii = true %}{{ tools | tojson(ensure_ascii=ascii) }}{{ tools | tojson(separators=(',', ':')) }}",
  '{% for tool in tools %}{% set f = tool.function %}{{ f.name }}: {{ f.description | trim }} {{ f.parameters | tojson }} {{ f | tojson }}{% for name, value in f.parameters.items() %}{{ name }}={{ value | string }}{% endfor %}{% endfor %}',
  '{% set ns = namespace(all=tools, n=0) %}{% for tool in ns.all | reverse %}{% set ns.n = ns.n + 1 %}{% set ns.all = [tool] %}{{ ns.n }} {{ ns.all | tojson }}{% endfor %}{{ tools | length }}{{ tools[0] | tojson }}{{ tools[0].function.name | upper }}',
  '{% macro write(value) %}{% if value is mapping %}{% for key in value %}<{{ key }}>{{ write(value[key]) }}{% endfor %}{% else %}{{ value | tojson }}{% endif %}{% endmacro %}{% for tool in tools %}{{ write(tool) }}{% endfor %}',
  '{% if tools %}{{ tools | map(attribute="function") | list | tojson }}{{ tools | selectattr("type", "equalto", "function") | list | length }}{% endif %}{{ messages | tojson }}',
].map((source) => ({ source, template: new ChatTemplate(source, tokens) }));

const text = fc
  .array(
    fc.constantFrom(
      'a',
      'word ',
      '<',
      '<|im_',
      'start|>',
      '<s>',
      '[TOOLS]',
      '\ue000',
      '\uf8ff',
      'é',
      '\u{1f600}',
      '"',
      '\n',
    ),
    {
      maxLength: 5,
    },
  )
  .map((parts) => parts.join(''));
const schema = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(
    fc.oneof(text, fc.constantFrom('type', 'role', '7', '__proto__', 'items')),
    tie('value'),
    { maxKeys: 3 },
  ),
}));
const tool = fc
  .record({ name: text, description: text, parameters: schema.object })
  .map((f) => ({ type: 'function', function: f }));
const lists = fc
  .array(fc.oneof(tool as fc.Arbitrary<unknown>, schema.value), { minLength: 1, maxLength: 4 })
  // Of JSON, as requests are.
  .map((list) => JSON.parse(JSON.stringify(list)) as unknown[]);

function rendered(template: ChatTemplate, messages: ChatMessage[], options: RenderOptions): unknown {
  try {
    return template.render(messages, options).segments;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Least number of steps with which a chat is rendered. */
function stepsOf(template: ChatTemplate, messages: ChatMessage[], options: RenderOptions): number {
  let [few, enough] = [0, 4096];
  while (enough - few > 1) {
    const middle = (few + enough) >> 1;
    if (template.renderWithin(middle, messages, options) === null) few = middle;
    else enough = middle;
  }
  return enough;
}

describe('a prompt with functions that are remembered', () => {
  it('is what it is with new ones, whatever the template makes of them', () => {
    let numAtRisk = 0;
    fc.assert(
      fc.property(lists, text, fc.nat(TEMPLATES.length - 1), (list, content, i) => {
        const { source, template } = TEMPLATES[i]!;
        const messages = [{ role: 'user', content }];
        const json = JSON.stringify(list);
        const expected = rendered(new ChatTemplate(source, tokens), messages, { tools: list });
        for (let round = 0; round < 2; round++) {
          expect(rendered(template, messages, { tools: json })).toEqual(expected);
        }
        if (/<s>|\[TOOLS\]/.test(json)) numAtRisk++;
      }),
      { numRuns: draws(133) },
    );
    expect(numAtRisk).toBeGreaterThan(50);
  });

  it('takes as many steps as with new ones', () => {
    const list = [
      { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } },
    ];
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const { source } of TEMPLATES) {
      const template = new ChatTemplate(source, tokens);
      const steps = stepsOf(new ChatTemplate(source, tokens), messages, { tools: list });
      expect(steps).toBeGreaterThan(4);
      for (let round = 0; round < 2; round++) {
        expect(stepsOf(template, messages, { tools: JSON.stringify(list) }), source).toBe(steps);
      }
    }
  });

  it('refuses functions that are nested too deeply as it does others', () => {
    const template = new ChatTemplate('{{ tools | tojson }}', tokens);
    const json = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    for (let i = 0; i < 2; i++) {
      expect(() => template.render([], { tools: json })).toThrow('nested too deeply');
    }
  });
});

describe('lists of functions', () => {
  const lists = () => new KnownToolLists(() => ({ isAtRisk: false, privateTexts: '' }));

  it('are read once', () => {
    const known = lists();
    const first = known.of('[{"name": "f"}]');
    expect(known.of('[{"name": "f"}]')).toBe(first);
    expect(known.of('[{"name": "f" }]')).not.toBe(first);
  });

  it('are bounded in number, and those of last use stay', () => {
    const known = lists();
    const kept = known.of('["kept"]');
    for (let i = 0; i < 200; i++) {
      known.of(`["${i}"]`);
      expect(known.of('["kept"]')).toBe(kept);
    }
    expect(known.size.lists).toBe(64);
  });

  it('are bounded in their sizes, of which values count', () => {
    const known = lists();
    const many = (i: number) => `[${i},${Array(16_000).fill(1).join(',')}]`;
    const first = known.of(many(1));
    for (let i = 2; i < 10; i++) known.of(many(i));
    expect(known.size.units).toBeLessThanOrEqual(2 ** 21);
    expect(known.size.lists).toBe(3);
    expect(known.of(many(1))).not.toBe(first);
    const long = (i: number) => `["${i}${'x'.repeat(2 ** 20)}"]`;
    for (let i = 0; i < 4; i++) known.of(long(i));
    expect(known.size.units).toBeLessThanOrEqual(2 ** 21);
  });

  it('keep texts that filters made of their own values, up to a length', () => {
    const { value, written } = lists().of(JSON.stringify([{ name: 'f', list: [[[['deep']]]] }]));
    const [inner] = value as object[];
    expect([written.has(value as object), written.has(inner!), written.has({})]).toEqual([true, true, false]);
    written.set({}, '', 'text');
    expect(written.get({}, '')).toBeUndefined();
    written.set(inner!, '', 'text');
    expect(written.get(inner!, '')).toBe('text');
    expect(written.get(inner!, 'indent')).toBeUndefined();
    written.set(inner!, 'indent', 'x'.repeat(1000));
    expect(written.get(inner!, 'indent')).toBeUndefined();
  });
});
