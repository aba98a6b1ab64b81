import { markdownTable } from '../../support/markdown-table.js';
import { GENERATION, PROMPT } from './crowd.js';
import { type Cell, KINDS, type MeasuredFormat } from './measure-format.js';

const percent = (share: number) => (100 * share).toFixed(0);

/** Cells with adapters, grouped into one row for each shape and kind of adapter. */
function rowsOf({ cells }: MeasuredFormat): { none: Cell; of: Cell[] }[] {
  return cells
    .filter(({ kind }) => kind === null)
    .flatMap((none) =>
      KINDS.map((kind) => ({
        none,
        of: cells.filter((cell) => cell.shape === none.shape && cell.kind === kind),
      })),
    );
}

export function sharesTable(found: readonly MeasuredFormat[]): string {
  const rows = found.flatMap((format) =>
    rowsOf(format).map(({ none, of }) => [
      format.precision,
      none.shape.name,
      of[0]!.kind!.name,
      percent(none.share),
      ...[1, 8, 32].map((count) => {
        const cell = of.find((one) => one.count === count);
        return cell === undefined ? '' : percent(cell.share);
      }),
    ]),
  );
  return markdownTable(['base', 'step', 'adapters', 'no row has one', '1 adapter', '8', '32'], rows, 3);
}

export function timesTable(found: readonly MeasuredFormat[]): string {
  const rows = found.flatMap((format) =>
    rowsOf(format).flatMap(({ none, of }) =>
      of.map(({ kind, count, extraMs, bytes, ms }) => [
        format.precision,
        none.shape.name,
        `${count}, ${kind!.name}`,
        ms.toFixed(1),
        extraMs.toFixed(1),
        (bytes / 1e6).toFixed(0),
        (bytes / format.bytesPerMs).toFixed(1),
      ]),
    ),
  );
  const rates = found.map(({ precision, bytesPerMs }) => `${(bytesPerMs / 1e6).toFixed(0)} (${precision})`);
  const head = ['base', 'step', 'adapters', 'ms', 'ms longer', 'MB of A and B', 'reading them, ms'];
  return `${markdownTable(head, rows, 3)}\n\nPlain reading reached ${rates.join(', ')} GB/s.`;
}

export function peerTable(found: readonly MeasuredFormat[]): string {
  const rows = found.flatMap(({ precision, cells, peer }) => {
    if (peer === null) return [];
    return [GENERATION, PROMPT].map((shape) => {
      const own = cells.find((cell) => cell.shape === shape && cell.kind === KINDS[0] && cell.count === 1)!;
      const theirs = shape === GENERATION ? peer.generation : peer.prompt;
      const rate = (1000 * shape.sequences * shape.tokens) / own.ms;
      return [
        `${precision}, ${peer.type}`,
        shape.name,
        rate.toFixed(0),
        percent(own.share),
        theirs.with.toFixed(0),
        percent(theirs.with / theirs.without),
        `${(rate / theirs.with).toFixed(2)}x`,
      ];
    });
  });
  const head = [
    'Skein, llama.cpp',
    'step',
    'Skein, tokens/s',
    '% of without',
    'llama.cpp, tokens/s',
    '% of without',
    'ratio',
  ];
  return markdownTable(head, rows, 2);
}
