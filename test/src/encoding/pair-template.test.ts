import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ScoreHead } from '../../../models/encoder-config.js';
import { readTokenizerFiles, Tokenizer } from '../../../models/tokenizer/index.js';
import { PairTemplate } from '../../../src/encoding/pair-template.js';

const folder = join(import.meta.dirname, '../../fixtures');
const qwen = new Tokenizer(await readTokenizerFiles(join(folder, 'tiny-qwen3')));
const bert = new Tokenizer(await readTokenizerFiles(join(folder, 'tiny-bert-score')));

const BY_TOKENS: ScoreHead = {
  kind: 'score',
  pooling: 'last',
  layers: [],
  activation: 'sigmoid',
  tokens: [70, 75],
};
const { tokens: _, ...BY_LAYER } = BY_TOKENS;

const PAIRS =
  "{% for m in messages if m.role == 'query' or m.role == 'document' %}{{ m.content }}|{% endfor %}";
const CHAT = '{% for m in messages %}{{ m.content }}{% endfor %}';

const textOf = (template: PairTemplate | null) =>
  template!
    .render('who', 'the cat')
    .map(({ text }) => text)
    .join('');

it("takes the model's own template for pairs, and that of Qwen3 where its own is for conversations", () => {
  expect(textOf(PairTemplate.of(PAIRS, qwen, BY_TOKENS))).toBe('who|the cat|');
  expect(textOf(PairTemplate.of(PAIRS, bert, BY_LAYER))).toBe('who|the cat|');
  for (const source of [null, CHAT]) {
    expect(textOf(PairTemplate.of(source, qwen, BY_TOKENS))).toMatch(/<Query>: who\n<Document>: the cat/);
    expect(PairTemplate.of(source, bert, BY_LAYER)).toBe(null);
  }
});

it('has a place for an instruction where the template reads what the system says', () => {
  const qwens = PairTemplate.of(null, qwen, { ...BY_TOKENS, instruction: 'Own.' })!;
  const rendered = (asked?: string) =>
    qwens
      .render('who', 'the cat', asked)
      .map(({ text }) => text)
      .join('');
  expect(rendered()).toContain('<Instruct>: Own.\n<Query>: who');
  expect(rendered('Find cats.')).toContain('<Instruct>: Find cats.\n<Query>: who');
  expect([qwens.takesInstruction, PairTemplate.of(PAIRS, qwen, BY_TOKENS)!.takesInstruction]).toEqual([
    true,
    false,
  ]);
});

it.each([
  ["{% for m in messages if m.role == 'query' or m.role == 'document' %}", /cannot be parsed/],
  ['{% for m in messages %}{{ m.content }}', /cannot be parsed/],
  ["{{ 'query' }}{{ 'document' }}{{ messages[5].content }}", /./],
  ["{{ raise_exception('not a query or a document: ' + 'query' + 'document') }}", /not a query/],
])('refuses the broken template %s', (source, reason) => {
  const make = () => PairTemplate.of(source, qwen, BY_TOKENS);
  expect(make).toThrow(/^The model scores pairs by its chat template, which is broken: /);
  expect(make).toThrow(reason);
});

it('says that a model without a template for pairs, and without tokens of Qwen3, has none', () => {
  expect(() => PairTemplate.of(CHAT, bert, BY_TOKENS)).toThrow(
    /takes no messages of the roles query and document/,
  );
});
