import { describe, expect, it } from 'vitest';
import { GuideError } from '../../../../engine/guided/grammar.js';
import { matcherOf, matches } from '../follow.js';

const SCHEMA = { type: 'object', properties: { x: { type: 'array' } }, required: ['x'] };
const guide = (whitespace_pattern: string) => ({
  format: { type: 'json_schema', json_schema: SCHEMA, whitespace_pattern },
});
const TEXTS = ['{"x":[1,2]}', '{ "x": [1, 2] }', '{"x":  [1,2]}', '{\n"x":[1,2]}', '{"x":\u00a0[1,2]}'];

describe('white space of a pattern', () => {
  it.each([
    ['', [0]],
    ['[ ]?', [0, 1]],
    [' *', [0, 1, 2]],
    // A class is taken without what JSON does not allow.
    ['\\s*', [0, 1, 2, 3]],
    ['(\\n|)', [0, 3]],
  ])('%j holds in the values of a schema too', (pattern, expected) => {
    const matcher = matcherOf('structural_tag', guide(pattern));
    expect(TEXTS.flatMap((text, i) => (matches(matcher, text) ? [i] : []))).toEqual(expected);
  });

  it.each(['a', '[a-z]', ' |,', '('])('%j is refused', (pattern) => {
    expect(() => matcherOf('structural_tag', guide(pattern))).toThrow(GuideError);
  });

  it('is one for all schemas of a tag', () => {
    const other = { type: 'json_schema', json_schema: SCHEMA, whitespace_pattern: ' ' };
    const elements = (first: string) => ({
      format: { type: 'sequence', elements: [guide(first).format, other] },
    });
    expect(() => matcherOf('structural_tag', elements(' '))).not.toThrow();
    expect(() => matcherOf('structural_tag', elements('\\n'))).toThrow(/another pattern/);
  });
});
