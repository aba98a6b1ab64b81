import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ModulePattern } from '../../../models/adapters/module-pattern.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { draws } from '../../support/scale.js';

const Q = 'model.layers.12.self_attn.q_proj';
const matches = (pattern: string, text: string, steps = 100_000) =>
  new ModulePattern('file', pattern).matchesAll(text, { left: steps });

describe('ModulePattern', () => {
  it.each([
    ['.*q_proj', true],
    ['q_proj', false],
    [String.raw`model\.layers\.\d+\.self_attn\.(q|k|v)_proj`, true],
    [String.raw`model\.layers\.\d\.self_attn\.q_proj`, false],
    [String.raw`.*\.1[0-2]\..*`, true],
    [String.raw`.*\.[^1]\d*\..*`, false],
    ['^(?!.*mlp).*_proj$', true],
    ['^(?!.*self).*_proj$', false],
    [String.raw`^(model(?=\.).*\.(q_proj|v_proj))$`, true],
    [String.raw`.*(?<=self_attn\.)q_proj`, true],
    [String.raw`.*(?<!self_attn\.)q_proj`, false],
    [
      String.raw`(?:.*?(?:language|text).*?)|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:q_proj))`,
      true,
    ],
    [String.raw`(?P<rest>.+)\.q_proj\Z`, true],
    [String.raw`\Amodel.{1,40}`, true],
    ['model.{,10}', false],
    ['model.{3}', false],
    [String.raw`[\w.]+`, true],
    [String.raw`\S+\B\S\b`, true],
    [String.raw`[a-z]+(\.([a-z_]+|[0-9]+))*`, true],
    ['', false],
    ['|.*', true],
    ['.*()*', true],
    ['(a|b|)*.*(|x)+', true],
    ['.*[]x]', false],
    ['.*q[_-]proj', true],
    ['x{', false],
  ])('%s', (pattern, expected) => {
    expect(matches(pattern, Q)).toBe(expected);
  });

  it('takes braces literally that are no repetition', () => {
    expect(matches('x{a}{', 'x{a}{')).toBe(true);
    expect(matches('x{}', 'x{}')).toBe(true);
  });

  it.each([
    ['(a', /unclosed parenthesis/],
    ['a)', /unopened parenthesis/],
    ['[a', /unclosed bracket/],
    ['*a', /repeats nothing/],
    ['a**', /repeats a repetition/],
    ['a*{2}', /repeats a repetition/],
    ['a++', /possessive/],
    ['a{3,2}', /repetition \{3,2\}/],
    ['a{100000}', /repetition \{100000\}, not from 0 to 1000/],
    ['(?i)a', /group of a kind/],
    ['(?>a)', /group of a kind/],
    ['(a)\\1', /\\1, which is not known/],
    ['\\pL', /\\p, which is not known/],
    ['a\\', /ends with a backslash/],
    ['[a-\\d]', /range of classes/],
    ['('.repeat(200), /nested too deeply/],
    ['a'.repeat(5000), /5000 characters long/],
  ])('refuses %s', (pattern, message) => {
    expect(() => new ModulePattern('file', pattern)).toThrow(CheckpointError);
    expect(() => new ModulePattern('file', pattern)).toThrow(message);
  });

  it.each(['(a+)+b', '(a|a)*b', '(a*)*b', '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b', '((a?){50}){50}b'])(
    'bounds the work of %s',
    (pattern) => {
      expect(() => matches(pattern, 'a'.repeat(40))).toThrow(/too many steps|too deeply/);
    },
  );

  it('bounds the depth of a match', () => {
    expect(() => matches('((()){1000}){1000}', '')).toThrow(/nested too deeply/);
    expect(() => matches('.*', 'a'.repeat(10_000))).toThrow(/nested too deeply/);
  });

  const character = fc.constantFrom('a', 'b', '\\.', '.', '[ab]', '[^a]', '\\w', '\\b', '^', '$');
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      character,
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `${one}${other}`),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(${one}|${other})`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{2}', '{1,2}', '*?'))
        .map(([one, count]) => `(?:${one})${count}`),
      tie('pattern').map((one) => `(?=${one})`),
      tie('pattern').map((one) => `(?!${one})`),
    ),
  }));

  it('agrees with JavaScript, where both know a pattern', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '.', '_'), maxLength: 6 });
    fc.assert(
      fc.property(pattern, text, (source, input) => {
        expect(matches(source, input, 10_000_000)).toBe(new RegExp(`^(?:${source})$`).test(input));
      }),
      { numRuns: draws(400) },
    );
  });

  it('reads or refuses any text', () => {
    const free = fc.string({ unit: fc.constantFrom(...'ab.*+?{}[]()|^$\\-:=!<P>,1'), maxLength: 12 });
    fc.assert(
      fc.property(free, (source) => {
        try {
          matches(source, 'ab.a', 10_000);
        } catch (error) {
          if (!(error instanceof CheckpointError)) throw error;
        }
      }),
      { numRuns: draws(400) },
    );
  });
});
