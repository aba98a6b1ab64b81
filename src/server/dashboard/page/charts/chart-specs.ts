import { milliseconds } from '../formation/words.js';
import type { SeriesName } from './series.js';

export interface ChartLine {
  name: string;
  of: SeriesName;
  colour: `--${string}`;
  /** Dashes of the line, so that lines differ not only by colour. */
  dash: readonly number[];
  fill: boolean;
}

export interface ChartSpec {
  title: string;
  lines: readonly ChartLine[];
  /** Least value for the top of the scale. */
  least: number;
  /** True for a share, whose scale is in percent. */
  isShare?: boolean;
  format: (value: number) => string;
}

const SOLID: readonly number[] = [];
const DASHED: readonly number[] = [6, 4];
const DOTTED: readonly number[] = [2, 3];

const line = (name: string, of: SeriesName, colour: `--${string}`, dash = SOLID, fill = false): ChartLine => {
  return { name, of, colour, dash, fill };
};
const quantiles = (of: 'first' | 'inter') => [
  line('p50', `${of}P50`, '--generating'),
  line('p90', `${of}P90`, '--resumed', DASHED),
  line('p99', `${of}P99`, '--paused', DOTTED),
];
const whole = (value: number) => Math.round(value).toLocaleString('en');
const percent = (value: number) =>
  `${value < 10 && value > 0 ? value.toFixed(1).replace(/\.0$/, '') : Math.round(value)} %`;
const tenth = (value: number) => (value < 10 ? value.toFixed(1).replace(/\.0$/, '') : whole(value));
const latency = (value: number) => (value === 0 ? '0' : milliseconds(value).replace('.0 ', ' '));

export const CHARTS: readonly ChartSpec[] = [
  {
    title: 'Tokens per second',
    lines: [
      line('generated', 'generatedPerSecond', '--generating', SOLID, true),
      line('prompt', 'promptPerSecond', '--context', DASHED),
    ],
    least: 10,
    format: whole,
  },
  {
    title: 'Requests',
    lines: [
      line('Requests per batch', 'batch', '--generating', SOLID, true),
      line('Requests in flight', 'inFlight', '--resumed', DASHED),
      line('Waiting', 'waiting', '--queued', DOTTED),
    ],
    least: 4,
    format: tenth,
  },
  {
    title: 'KV cache',
    lines: [
      line('used', 'kvUsed', '--generating', SOLID, true),
      line('cached', 'kvCached', '--done', DASHED),
    ],
    least: 100,
    isShare: true,
    format: percent,
  },
  {
    title: 'Iteration time',
    lines: [
      line('mean', 'iterationMs', '--generating', SOLID, true),
      line('longest', 'longestMs', '--context', DASHED),
    ],
    least: 1,
    format: latency,
  },
  {
    title: 'Time to first token',
    lines: quantiles('first'),
    least: 1,
    format: latency,
  },
  {
    title: 'Between two tokens',
    lines: quantiles('inter'),
    least: 1,
    format: latency,
  },
];
