import { describe, expect, it } from 'vitest';
import { parseExposition } from '../../../../tools/monitoring/exposition.js';

const head = '# HELP a What it is.\n# TYPE a';

describe("the strict reader of Prometheus' text format", () => {
  it('reads names, labels with what is escaped in them, and numbers of every form', () => {
    const text = `${head} gauge\na{x="1",y="a\\"b\\\\c\\n"} 1.5e-3\na{x="2"} +Inf\na NaN\n`;
    const [family] = [...parseExposition(text).values()];
    expect(family).toEqual({
      name: 'a',
      help: 'What it is.',
      type: 'gauge',
      samples: [
        { name: 'a', labels: { x: '1', y: 'a"b\\c\n' }, value: 0.0015 },
        { name: 'a', labels: { x: '2' }, value: Number.POSITIVE_INFINITY },
        { name: 'a', labels: {}, value: Number.NaN },
      ],
    });
  });

  it.each([
    ['a last line that does not end', `${head} gauge\na 1`],
    ['a sample without a family', 'a 1\n'],
    ['a type without its help', '# TYPE a gauge\na 1\n'],
    ['a type that is none', `${head} number\na 1\n`],
    ['a sample of another family', `${head} gauge\nb 1\n`],
    ['a family in two places', `${head} gauge\na 1\n# HELP b x\n# TYPE b gauge\nb 1\n${head} gauge\n`],
    ['a series twice', `${head} gauge\na{x="1",y="2"} 1\na{y="2",x="1"} 2\n`],
    ['a label twice', `${head} gauge\na{x="1",x="2"} 1\n`],
    ['a value that is no number', `${head} gauge\na undefined\n`],
    ['a line end inside a label', `${head} gauge\na{x="1\n2"} 1\n`],
    ['a name with a hyphen', '# HELP a-b x\n# TYPE a-b gauge\na-b 1\n'],
    ['a counter below zero', `${head} counter\na -1\n`],
    ['a histogram without +Inf', `${head} histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n`],
    [
      'buckets that are not cumulative',
      `${head} histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n`,
    ],
    [
      'bounds out of order',
      `${head} histogram\na_bucket{le="2"} 0\na_bucket{le="1"} 0\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n`,
    ],
    ['a count that is not the last bucket', `${head} histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n`],
    ['a histogram without a sum', `${head} histogram\na_bucket{le="+Inf"} 1\na_count 1\n`],
  ])('refuses %s', (_, text) => {
    expect(() => parseExposition(text)).toThrow();
  });
});
