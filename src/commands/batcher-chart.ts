import { counted } from '../../base/sentences.js';
import type {
  BatcherSimulationInput,
  BatcherSimulationResult,
  Spread,
} from '../../engine/simulation/batcher-simulation.js';

const BAR_WIDTH = 50;
const MAX_BARS = 24;

/**
 * Sizes of batches as bars, and how long requests waited.
 *
 *   rows  batches
 *     1        12  ▇▇
 *   2-4       302  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
 *
 *             mean      p50      p90      p99      max
 *   queue   1.2 ms   1.0 ms   2.0 ms   2.0 ms   2.1 ms
 *   total   5.7 ms   5.5 ms   6.0 ms   6.1 ms   6.2 ms
 */
export function batcherChart(input: BatcherSimulationInput, result: BatcherSimulationResult): string {
  const lines = [
    ...summary(input, result),
    '',
    ...bars(result),
    '',
    ['', 'mean', 'p50', 'p90', 'p99', 'max'].map(cell).join(''),
    spreadLine('queue', result.queueUs),
    spreadLine('total', result.latencyUs),
  ];
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
}

function summary({ batcher, instances, computeUs }: BatcherSimulationInput, result: BatcherSimulationResult) {
  const { preferred, maxBatchSize, maxDelayUs, oneByOne } = batcher;
  const sizes = preferred.join(', ');
  const how = oneByOne
    ? 'one request a batch'
    : `at most ${counted(maxBatchSize, 'row')}, preferred ${sizes}, delay ${timeText(maxDelayUs)}`;
  const model = `${counted(instances, 'instance')}, ${timeText(computeUs.batch)} a batch and ${timeText(computeUs.row)} a row`;
  const { requests, answered, refused, expired, seconds, requestsPerSecond, rowsPerSecond } = result;
  const lost = [
    ...(refused > 0 ? [`${refused} found the queue full`] : []),
    ...(expired > 0 ? [`${expired} waited too long`] : []),
  ];
  const rates = `${numberText(requestsPerSecond)} requests/s, ${numberText(rowsPerSecond)} rows/s`;
  const { batches, meanRows, busyShare } = result;
  return [
    `${how}; ${model}`,
    [`${counted(requests, 'request')} in ${seconds.toFixed(3)} s`, `${answered} answered`, ...lost].join(
      ', ',
    ),
    rates,
    batches === 0
      ? 'no batch'
      : `${batches} ${batches === 1 ? 'batch' : 'batches'} of ${meanRows.toFixed(1)} rows on average, instances busy for ${Math.round(100 * busyShare)} %`,
  ];
}

interface Bar {
  from: number;
  to: number;
  batches: number;
}

/** Where there are more sizes than bars, a bar represents several. */
function bars({ batchSizes }: BatcherSimulationResult): string[] {
  const largest = batchSizes.at(-1)?.rows ?? 0;
  const width = Math.ceil(largest / MAX_BARS);
  const grouped = new Map<number, Bar>();
  for (const { rows, batches } of batchSizes) {
    const group = Math.floor((rows - 1) / Math.max(1, width));
    const bar = grouped.get(group) ?? {
      from: group * width + 1,
      to: Math.min(largest, (group + 1) * width),
      batches: 0,
    };
    bar.batches += batches;
    grouped.set(group, bar);
  }
  const all = [...grouped.values()];
  const most = Math.max(1, ...all.map(({ batches }) => batches));
  const label = ({ from, to }: Bar) => (from === to ? String(from) : `${from}-${to}`);
  const labelWidth = Math.max('rows'.length, ...all.map((bar) => label(bar).length));
  return [
    `${'rows'.padStart(labelWidth)}  batches`,
    ...all.map((bar) => {
      const length = Math.ceil((BAR_WIDTH * bar.batches) / most);
      return `${label(bar).padStart(labelWidth)}  ${String(bar.batches).padStart(7)}  ${'▇'.repeat(length)}`;
    }),
  ];
}

const cell = (text: string, index: number) => (index === 0 ? text.padEnd(5) : text.padStart(10));

function spreadLine(name: string, { mean, p50, p90, p99, max }: Spread): string {
  return [name, ...[mean, p50, p90, p99, max].map(timeText)].map(cell).join('');
}

function timeText(us: number): string {
  if (us < 1000) return `${numberText(us)} µs`;
  return us < 1e6 ? `${numberText(us / 1000)} ms` : `${numberText(us / 1e6)} s`;
}

/** Three digits, or as many as stand before the point. */
function numberText(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
