import { markdownTable } from '../../support/markdown-table.js';
import { median } from '../../support/statistics.js';
import type { Answer, Precision } from './side.js';
import { nameOf, textsOf, type Workload } from './workloads.js';

/** What a side was measured at: for each workload an answer a round. */
export interface MeasuredSide {
  name: string;
  precision: Precision;
  isSkein: boolean;
  version: string;
  answers: Answer[][];
}

/** Rows of ratios: a side of Skein, and the peers of which the best one stands below the line. */
const RATIOS: readonly { side: Precision; beside: Precision | null }[] = [
  { side: 'f32', beside: 'f32' },
  { side: 'bf16', beside: 'bf16' },
  { side: 'int8', beside: 'f32' },
  { side: 'int8', beside: null },
];

/** Texts a second of each side, and the least cosine of its first embeddings to those in f32. */
export function encoderTable(workloads: readonly Workload[], sides: readonly MeasuredSide[]): string {
  const exact =
    sides.find(({ name }) => name === 'torch f32') ?? sides.find(({ name }) => name === 'Skein f32');
  const rows = sides.map((side) => {
    const rates = workloads.map((_, w) => written(rateOf(side, w, workloads)));
    const cosines = workloads.map((_, w) =>
      exact === undefined ? 1 : cosine(side.answers[w]![0]!.first, exact.answers[w]![0]!.first),
    );
    return [side.name, ...rates, Math.min(...cosines).toFixed(5)];
  });
  const head = ['texts/s', ...workloads.map(nameOf), 'cosine'];
  return markdownTable(head, rows);
}

/** How many times as fast Skein is as the best peer, which is named; null where there is no peer. */
export function ratioTable(workloads: readonly Workload[], sides: readonly MeasuredSide[]): string | null {
  const rows = ratioRows(workloads, sides);
  return rows.length === 0 ? null : markdownTable(['times as fast', ...workloads.map(nameOf)], rows);
}

function ratioRows(workloads: readonly Workload[], sides: readonly MeasuredSide[]): string[][] {
  return RATIOS.flatMap(({ side: precision, beside }) => {
    const side = sides.find((one) => one.isSkein && one.precision === precision);
    const peers = sides.filter((one) => !one.isSkein && (beside === null || one.precision === beside));
    if (side === undefined || peers.length === 0) return [];
    const cells = workloads.map((_, w) => {
      const best = peers.toSorted((a, b) => rateOf(b, w, workloads) - rateOf(a, w, workloads))[0]!;
      const ratio = median(
        side.answers[w]!.map(({ seconds }, round) => best.answers[w]![round]!.seconds / seconds),
      );
      return `${ratio.toFixed(2)} ${best.name.split(' ')[0]!}`;
    });
    return [[`${side.name}, the best peer ${beside === null ? 'of all' : `in ${beside}`}`, ...cells]];
  });
}

const rateOf = ({ answers }: MeasuredSide, w: number, workloads: readonly Workload[]): number =>
  textsOf(workloads[w]!) / median(answers[w]!.map(({ seconds }) => seconds));

const written = (rate: number): string => (rate < 20 ? rate.toFixed(1) : rate.toFixed(0));

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}
