import { describe, expect, it } from 'vitest';
import { ModulePatterns } from '../../../models/adapters/module-patterns.js';

const Q = 'model.layers.0.self_attn.q_proj';
const patterns = (values: Record<string, number>, left = 10_000) =>
  new ModulePatterns('c.json: rank_pattern', Object.entries(values), { left });

describe('ModulePatterns', () => {
  it.each([
    ['q_proj', true],
    ['self_attn.q_proj', true],
    [Q, true],
    ['proj', false],
    ['attn.q_proj', false],
    ['self_attn', false],
    ['x.q_proj', false],
    // A point of a plain key is any character, as in every regular expression.
    ['self.attn.q.proj', true],
    ['layers.0.*q_proj', true],
    ['ayers.0.*q_proj', false],
    [String.raw`^model\.layers\.0\..*`, true],
    [String.raw`^layers\.0\..*`, false],
    ['k_proj|q_proj', true],
    ['k_proj|self_attn', false],
    ['', false],
    [`x${Q}`, false],
  ])('%s', (key, fits) => {
    expect(patterns({ [key]: 7 }).valueOf(Q)).toBe(fits ? 7 : undefined);
  });

  it('takes the first key that fits', () => {
    const some = patterns({ k_proj: 1, q_proj: 2, 'self_attn.q_proj': 3 });
    expect(some.valueOf(Q)).toBe(2);
    expect(some.valueOf('model.layers.0.self_attn.v_proj')).toBeUndefined();
  });

  it('names file and pattern where one cannot be followed', () => {
    expect(() => patterns({ 'a)|(b': 1 })).toThrow(
      'c.json: rank_pattern: the pattern "a)|(b" has an unopened parenthesis.',
    );
    expect(() => patterns({ '.*.*.*.*.*.*x': 1 }, 1000).valueOf(Q)).toThrow(/takes too many steps\.$/);
    expect(() => patterns({ q_proj: 1 }, 3).valueOf(Q)).toThrow(
      /rank_pattern: its patterns take too many steps\.$/,
    );
  });
});
