/** A cell of a table; numbers are shown as they are. */
export type Cell = string | number;

/** A line of a Markdown table. */
export function tableRow(cells: readonly Cell[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** A Markdown table. The first `left` columns are aligned to the left, all others, which hold numbers, to the right. */
export function markdownTable(head: readonly Cell[], rows: readonly (readonly Cell[])[], left = 1): string {
  const rule = head.map((_, i) => (i < left ? '---' : '---:'));
  return [head, rule, ...rows].map(tableRow).join('\n');
}
