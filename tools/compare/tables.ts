import { tableRow } from '../support/markdown-table.js';
import { median, spread } from '../support/statistics.js';
import type { ComparisonRecord } from './record.js';
import type { SideInfo } from './side.js';

/** Names of the engines besides Skein, in tables and after `--only`. */
export const LLAMA = 'llama.cpp';
export const IK_LLAMA = 'ik_llama.cpp';
export const OPENVINO = 'openvino';
export const LLAMA_SERVER = 'llama-server';
export const IK_SERVER = 'ik_llama-server';

/** A column of numbers: one value of the measurements under one name. */
export interface TableColumn {
  title: string;
  /** The measurements' column. */
  column: string;
  key: string;
  /** Latencies: the least is the best, and "2x" is half. Default: rates. */
  isLatency?: boolean;
}

/** Peers' formats that have the same weights as one of Skein's; int4 has groups of 32 with a minimum, as Q4_1 has. */
const SAME: Readonly<Record<string, string>> = { f32: 'F32', bf16: 'BF16', int8: 'Q8_0', int4: 'Q4_1' };
/** The peers' format of a side of ours, whatever its instruction set. */
const sameAs = ({ format }: SideInfo): string | undefined => SAME[format.split('@')[0]!];
/** A file counts as no smaller from this share on: a GGUF has a vocabulary besides, other files have not. */
const NO_SMALLER = 0.98;

export interface Opponents {
  label: string;
  sides: SideInfo[];
}

/** Engines whose formats are GGUF's, so that each of Skein's has one of the same weights. */
const GGUF_ENGINES: ReadonlySet<string> = new Set([LLAMA, LLAMA_SERVER, IK_LLAMA, IK_SERVER]);

/**
 * Whom a format of Skein's is held against, engine by engine: the same weights and its best of no smaller ones where its
 * formats can be paired with ours, and its best of all. A list that says what another one says is left out.
 */
export function opponentsOf(ours: SideInfo, all: readonly SideInfo[]): Opponents[] {
  const engines = [...new Set(all.map(({ engine }) => engine))].filter((engine) => engine !== ours.engine);
  return engines.flatMap((engine) => {
    const peers = all.filter((side) => side.engine === engine);
    const best = { label: `${engine}, its best`, sides: peers };
    if (!GGUF_ENGINES.has(engine)) return [best];
    const same = peers.filter(({ format }) => format === sameAs(ours));
    const noSmaller = peers.filter(({ bytes }) => bytes >= NO_SMALLER * ours.bytes);
    const lists = [{ label: `${engine} ${sameAs(ours)}`, sides: same }];
    if (noSmaller.length > same.length && noSmaller.length < peers.length)
      lists.push({ label: `${engine}, its best of no smaller weights`, sides: noSmaller });
    if (peers.length > same.length) lists.push(best);
    return lists.filter(({ sides }) => sides.length > 0);
  });
}

/** Factor by which the median of `ours` is better than the best median of `peers`; NaN if either was not measured. */
export function ratio(
  record: ComparisonRecord,
  ours: SideInfo,
  peers: readonly SideInfo[],
  { column, key, isLatency = false }: TableColumn,
): number {
  const of = ({ name }: SideInfo) => median(record.values(name, column, key));
  const measured = peers.map(of).filter((value) => Number.isFinite(value));
  if (measured.length === 0) return Number.NaN;
  return isLatency ? Math.min(...measured) / of(ours) : of(ours) / Math.max(...measured);
}

/** Medians of every side that was measured, and the rounds that each column has. */
export function mediansTable(record: ComparisonRecord, columns: readonly TableColumn[], digits = 0): string {
  const lines = head(['engine, weights', 'MB'], columns);
  for (const side of measuredSides(record, columns)) {
    const cells = columns.map(({ column, key }) => {
      const value = median(record.values(side.name, column, key));
      return Number.isNaN(value) ? '' : value.toFixed(digits);
    });
    lines.push(tableRow([side.name, (side.bytes / 1e6).toFixed(0), ...cells]));
  }
  const rounds = columns.map(({ column, key }) => {
    const all = record.recorded.sides.map(({ name }) => record.values(name, column, key).length);
    const counts = all.filter((count) => count > 0);
    if (counts.length === 0) return '';
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    return least === most ? `${most}` : `${least} to ${most}`;
  });
  lines.push(tableRow(['rounds', '', ...rounds]));
  return lines.join('\n');
}

/** Skein's medians over those of the others: of the same weights, of no smaller ones, of all. */
export function ratiosTable(record: ComparisonRecord, columns: readonly TableColumn[]): string {
  const lines = head(['ratio'], columns);
  const sides = measuredSides(record, columns);
  for (const ours of sides.filter(({ engine }) => engine === 'skein')) {
    for (const { label, sides: peers } of opponentsOf(ours, sides)) {
      const cells = columns.map((column) => {
        const value = ratio(record, ours, peers, column);
        return Number.isNaN(value) ? '' : `${value.toFixed(2)}x`;
      });
      lines.push(tableRow([`${ours.name} / ${label}`, ...cells]));
    }
  }
  return lines.join('\n');
}

/** Line with the spread of the rounds within a cell: the median over all cells, and the worst. */
export function spreadLine(record: ComparisonRecord, columns: readonly TableColumn[]): string {
  const cells = record.recorded.sides.flatMap(({ name }) =>
    columns.map(({ column, key }) => record.values(name, column, key)),
  );
  const spreads = cells.filter((values) => values.length > 1).map(spread);
  if (spreads.length === 0) return 'One round: nothing is known of how far rounds lie apart.';
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  return `Rounds of a cell lie ${percent(median(spreads))} apart in the middle, ${percent(Math.max(...spreads))} in the worst.`;
}

function head(first: readonly string[], columns: readonly TableColumn[]): string[] {
  const titles = [...first, ...columns.map(({ title }) => title)];
  return [tableRow(titles), tableRow(titles.map((_, i) => (i === 0 ? '---' : '---:')))];
}

/** Peers before Skein, each in the order in which its formats came. */
function measuredSides(record: ComparisonRecord, columns: readonly TableColumn[]): SideInfo[] {
  const sides = record.recorded.sides.filter(({ name }) =>
    columns.some(({ column, key }) => record.values(name, column, key).length > 0),
  );
  return sides.toSorted((a, b) => Number(a.engine === 'skein') - Number(b.engine === 'skein'));
}
