import { expect, it } from 'vitest';
import { readGuide } from '../../../../engine/guided/read-guide.js';
import { MAX_READING_WORK, readingWork } from '../../../../engine/guided/reading-work.js';

/** These are read strictly or not, in turns: what they multiply is the same in both. */
const ONCE = [
  'products of counts',
  'exponential intersections',
  'patterns of names',
  'formats with lengths',
  'references that double',
  'groups that may begin a text',
];
const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];
const properties = (count: number, schemaOf: (i: number) => object) => ({
  properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, schemaOf(i)])),
});
const REFUSED =
  /automaton of more than 20000 states|too large an automaton|too much work to read|more than 2000 alternatives/;

it.each<[string, object]>([
  ['products of counts', properties(60, (i) => ({ pattern: '^(a[^]{0,300}){50}$', maxLength: 9000 - i }))],
  [
    'exponential intersections',
    properties(60, (i) => ({ allOf: ['a', 'b', 'c'].map((one) => ({ pattern: `${one}.{${20 + i}}$` })) })),
  ],
  ['look-aheads', { pattern: `^${LETTERS.map((letter) => `(?=.*${letter}.{9})`).join('')}` }],
  ['groups that may begin a text', { pattern: `${'(^|a)'.repeat(30)}b` }],
  ['formats with lengths', properties(60, (i) => ({ format: 'email', maxLength: 90 + i }))],
  [
    'branches that overlap',
    { oneOf: LETTERS.concat(LETTERS).map((one, i) => ({ type: 'string', minLength: i, pattern: one })) },
  ],
  [
    'patterns of names',
    {
      patternProperties: Object.fromEntries(['a', 'b', 'c', 'd'].map((one) => [`${one}.{9}$`, {}])),
      additionalProperties: {},
    },
  ],
  [
    'references that double',
    {
      $ref: '#/$defs/a',
      $defs: {
        a: {
          allOf: [
            { properties: { x: { $ref: '#/$defs/a' } } },
            { properties: { x: { allOf: [{ $ref: '#/$defs/a' }, { type: 'object' }] } } },
          ],
        },
      },
    },
  ],
])('a schema with %s is refused after a bounded number of steps, strict or not', (what, schema) => {
  for (const strict of ONCE.includes(what) ? [ONCE.indexOf(what) % 2 === 0] : [true, false]) {
    const format = { type: 'json_schema', json_schema: schema, strict };
    const read = () =>
      readGuide({ type: 'structural_tag', guide: JSON.stringify({ type: 'structural_tag', format }) });
    if (strict) expect(read).toThrow(REFUSED);
    else {
      try {
        expect(read().leftOut).not.toEqual([]);
      } catch (error) {
        expect((error as Error).message).toMatch(REFUSED);
      }
    }
    expect(readingWork()).toBeLessThan(1.1 * MAX_READING_WORK);
  }
});
