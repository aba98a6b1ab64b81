import { expect, it } from 'vitest';
import { lineChart } from '../../../tools/support/line-chart.js';

const panel = {
  ...{ title: 'hits', places: ['1', '2', '4'], xTitle: 'rate' },
  ticks: [1, 10, 100].map((value) => ({ value, text: `${value} s` })),
  lines: [{ name: 'cache', color: '#123456', values: [1, 10, 1000] }],
};

it('a line chart puts values where their scale says, and none outside', () => {
  const heights = (isLogarithmic: boolean) =>
    Array.from(
      lineChart('a', [{ ...panel, isLogarithmic }]).matchAll(/<circle cx="[\d.]+" cy="([\d.]+)"/g),
      ([, y]) => Number(y),
    );
  const [bottom, middle, top] = heights(true);
  expect(middle).toBeCloseTo((bottom! + top!) / 2, 0);
  expect(top).toBe(34);
  expect(heights(false)[1]! - bottom!).toBeCloseTo((9 / 99) * (top! - bottom!), 0);
  const chart = lineChart(
    'a',
    [panel, panel].map((one) => ({ ...one, isLogarithmic: true })),
  );
  expect(chart).toContain('<title>a</title>');
  expect(chart.match(/<g /g)).toHaveLength(2);
  expect(chart.match(/>cache</g)).toHaveLength(1);
});
