import { styleText } from 'node:util';
import type { Latency } from '../metrics/run-metrics.js';
import { OUTCOMES } from '../outcomes.js';
import type { BenchReport, RunReport } from './schema.js';

type Style = Parameters<typeof styleText>[0];

/** Styles a text, or returns it unchanged where there are no colours. */
export type Paint = (style: Style, text: string) => string;

export const plain: Paint = (_, text) => text;
export const coloured: Paint = (style, text) => styleText(style, text);

const ROWS: readonly [keyof RunReport['latencies'], string][] = [
  ['ttft', 'TTFT'],
  ['ttftFromScheduled', 'TTFT from schedule'],
  ['tpot', 'TPOT'],
  ['itl', 'ITL'],
  ['e2e', 'E2E'],
  ['e2eFromScheduled', 'E2E from schedule'],
  ['queueing', 'sent behind schedule'],
];
const COLUMNS = ['mean', 'p50', 'p90', 'p95', 'p99', 'p999', 'max'] as const;

/** Summary of a run, one screen of text. */
export function runSummary(run: RunReport, paint: Paint): string {
  const { throughput, requests, tokens, goodput } = run;
  const lines = [
    paint('bold', run.label) + (run.complete ? '' : paint(['bold', 'red'], `  INCOMPLETE: ${run.cutOff}`)),
    `  ${outcomes(run)} in ${run.seconds.toFixed(2)} s`,
    `  ${rate(throughput.requests)} requests/s   ${rate(throughput.outputTokens)} output tokens/s   ` +
      `${rate(throughput.totalTokens)} tokens/s in and out`,
  ];
  if (throughput.offered !== null) {
    lines.push(`  offered ${rate(throughput.offered)} requests/s, sent ${rate(throughput.issued)}`);
  }
  if (goodput !== null) {
    lines.push(
      `  goodput ${rate(goodput.requestsPerSecond)} requests/s: ${(100 * goodput.share).toFixed(1)} % within ${sloText(goodput.slo)}`,
    );
  }
  lines.push(
    '',
    `  ${'milliseconds'.padEnd(21)}${COLUMNS.map((name) => headOf(name).padStart(10)).join('')}`,
  );
  for (const [name, title] of ROWS) {
    const latency = run.latencies[name];
    if (latency.count > 0) lines.push(`  ${title.padEnd(21)}${COLUMNS.map((c) => ms(latency, c)).join('')}`);
  }
  const { verified, fullLength } = tokens;
  if (verified.requests > 0 && verified.exact < verified.requests) {
    lines.push(
      '',
      `  prompts: the server counts ${verified.meanError!.toFixed(1)} tokens other than asked on average, ${verified.maxError} at most`,
    );
  }
  if (fullLength.exact < fullLength.requests) {
    lines.push(
      '',
      `  answers: ${fullLength.requests - fullLength.exact} of ${fullLength.requests} are shorter than asked`,
    );
  }
  if (tokens.withoutUsage > 0) {
    lines.push(
      '',
      `  tokens of ${tokens.withoutUsage} answers are counted by pieces: the server does not say`,
    );
  }
  for (const { outcome, message } of firstOfEach(requests.messages)) {
    lines.push(paint('yellow', `  ${outcome}: ${message.replaceAll(/\s+/g, ' ').slice(0, 160)}`));
  }
  lines.push(...findings(run, paint));
  return `${lines.join('\n')}\n`;
}

function findings({ client }: RunReport, paint: Paint): string[] {
  const lines = client.findings.map(({ isBottleneck, message }) =>
    paint(isBottleneck ? 'red' : 'yellow', `  ${isBottleneck ? '!' : '-'} ${message}`),
  );
  if (client.isBottleneck) {
    lines.unshift(
      '',
      paint(['bold', 'red'], '  THE CLIENT WAS A BOTTLENECK: these figures are not the server’s alone.'),
    );
  }
  return lines;
}

/** Summary of a sweep; empty without one. */
export function sweepSummary({ sweep, runs }: BenchReport): string {
  if (sweep === null) return '';
  const unit = sweep.over === 'rate' ? 'requests/s' : 'requests at once';
  const lines = runs.map(({ load, throughput, latencies }) => {
    const { ttft, tpot } = latencies;
    const figures = [load!, throughput.requests, throughput.outputTokens].map((value) =>
      rate(value).padStart(12),
    );
    return (
      figures.join('') +
      [ttft.p99, tpot.p99].map((value) => (value === null ? '-' : rate(value)).padStart(14)).join('')
    );
  });
  const knee =
    sweep.knee === null
      ? 'No knee: throughput still grew with the load.'
      : `Knee at ${rate(sweep.knee.load)} ${unit}: ${rate(sweep.knee.requestsPerSecond)} requests/s, ${rate(sweep.knee.outputTokensPerSecond)} output tokens/s.`;
  const head = `${'load'.padStart(12)}${'requests/s'.padStart(12)}${'tokens/s'.padStart(12)}${'TTFT p99'.padStart(14)}${'TPOT p99'.padStart(14)}`;
  return `${[head, ...lines, '', knee].join('\n')}\n\n`;
}

/** Lines below the runs. */
export function headLines({ target, data, machine, placement }: BenchReport): string {
  return `${placement.message}\n${target.url}  ${target.model}  ${target.streamed ? 'streamed' : 'whole'}  data: ${String(data.kind)}  (${machine.cpu}, ${machine.cores} cores)\n`;
}

function outcomes({ requests }: RunReport): string {
  const parts = OUTCOMES.filter((name) => requests.outcomes[name] > 0).map(
    (name) => `${requests.outcomes[name]} ${name.replaceAll('_', ' ')}`,
  );
  return `${requests.total} requests: ${parts.join(', ')}`;
}

function firstOfEach(messages: RunReport['requests']['messages']): RunReport['requests']['messages'] {
  const seen = new Set<string>();
  return messages.filter(({ outcome }) => !seen.has(outcome) && seen.add(outcome));
}

function sloText(slo: NonNullable<RunReport['goodput']>['slo']): string {
  return Object.entries(slo)
    .map(([name, limit]) => `${name.replace('Ms', '').toUpperCase()} ${limit} ms`)
    .join(', ');
}

function headOf(name: string): string {
  return name === 'p999' ? 'p99.9' : name;
}

function ms(latency: Latency, column: (typeof COLUMNS)[number]): string {
  const value = latency[column];
  return (value === null ? '-' : value.toFixed(value < 100 ? 2 : 0)).padStart(10);
}

export function rate(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 1000 ? 1 : 0);
}
