import type { Tokens } from 'marked';
import { inlineSpans } from './inline-spans.js';
import { type Line, lineWidth, plain, type Span, styled, withStyle, wrappedSpans } from './styled-text.js';

const GAP = ' │ ';
/** Narrowest column of a table that is wider than the terminal. */
const MIN_COLUMN = 6;

/** A table in columns, as wide as its longest cells where there is room; else cells have several lines. */
export function tableLines({ header, rows, align }: Tokens.Table, width: number, depth: number): Line[] {
  const spansOf = (cell: Tokens.TableCell) => inlineSpans(cell.tokens, depth + 1);
  const head = header.map((cell) => withStyle(spansOf(cell), 'bold'));
  const body = rows.map((row) => row.map(spansOf));
  const natural = head.map((_, column) =>
    Math.max(1, ...[head, ...body].map((row) => lineWidth(row[column] ?? []))),
  );
  const widths = fitted(natural, width - GAP.length * (head.length - 1));
  const rule = styled(widths.map((one) => '─'.repeat(one)).join('─┼─'), 'dim');
  const shown = (row: readonly Span[][]) => rowLines(row, widths, align);
  return [...shown(head), [rule], ...body.flatMap(shown)];
}

/** Takes columns from the widest cells until all fit. */
function fitted(natural: readonly number[], room: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, one) => sum + one, 0) - room;
  while (over > 0) {
    const widest = Math.max(...widths);
    if (widest <= MIN_COLUMN) break;
    const next = Math.max(MIN_COLUMN, ...widths.filter((one) => one < widest));
    const count = widths.filter((one) => one === widest).length;
    const cut = Math.min(widest - next, Math.max(1, Math.floor(over / count)));
    for (const [column, one] of widths.entries()) {
      if (one !== widest || over <= 0) continue;
      widths[column] = one - cut;
      over -= cut;
    }
  }
  return widths;
}

function rowLines(row: readonly Span[][], widths: readonly number[], align: Tokens.Table['align']): Line[] {
  const cells = widths.map((width, column) => wrappedSpans(row[column] ?? [], width));
  const height = Math.max(...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, at) =>
    cells.flatMap((lines, column) => [
      ...(column === 0 ? [] : [styled(GAP, 'dim')]),
      ...padded(lines[at] ?? [], widths[column]!, align[column] ?? null),
    ]),
  );
}

function padded(line: Line, width: number, align: 'left' | 'right' | 'center' | null): Span[] {
  const free = Math.max(0, width - lineWidth(line));
  const before = align === 'right' ? free : align === 'center' ? Math.floor(free / 2) : 0;
  return [plain(' '.repeat(before)), ...line, plain(' '.repeat(free - before))];
}
