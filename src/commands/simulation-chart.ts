import { counted } from '../../base/sentences.js';
import type { SimulationId, SimulationResult } from '../../engine/simulation/simulate.js';
import type { SimulationInput } from '../../engine/simulation/simulation-input.js';

const WIDTH = 100;
const MAX_LABEL = 16;
const MAX_ROWS = 50;
const BLOCKS = 'blocks';
const BARS = ' ▁▂▃▄▅▆▇█';
/** Marks of a request's state, from the commonest to the rarest: a column of several iterations shows the rarest. */
const STATES = ' .=Cp';

/**
 * A row for each request over the iterations, and the blocks as a bar, in at most 100 columns.
 *
 *           0         10
 *   A       CC====
 *   B        ..CC=p.C==
 *   blocks  ▂▃▃▅▇█▇▅▅▅▂
 *
 * Where there are more iterations than columns, a column represents several: it shows the rarest of their
 * states and the most blocks.
 */
export function simulationChart(input: SimulationInput, result: SimulationResult): string {
  const { iterations, requests } = result;
  const rows = requests.slice(0, MAX_ROWS);
  const labels = rows.map(({ id }) => label(id));
  const labelWidth = Math.max(BLOCKS.length, ...labels.map((text) => text.length));
  const room = WIDTH - labelWidth - 2;
  const perColumn = Math.ceil(iterations.length / room);
  const columns = Math.ceil(iterations.length / perColumn);
  const states = requestStates(result, rows, { perColumn, columns });
  const line = (name: string, text: string) => `${name.padEnd(labelWidth)}  ${text}`.trimEnd();
  const lines = [
    summary(input, result),
    '',
    line('', ruler(columns, perColumn)),
    ...states.map((row, index) => line(labels[index]!, row)),
    ...(requests.length > rows.length ? [`and ${requests.length - rows.length} more requests`] : []),
    line(BLOCKS, blockBar(input, result, { perColumn, columns })),
    '',
    '. waiting  C context  = generating  p paused  (blank: not there yet, or done)',
  ];
  if (perColumn > 1) lines.push(`Each column is ${perColumn} iterations.`);
  return `${lines.join('\n')}\n`;
}

interface Grid {
  perColumn: number;
  columns: number;
}

function summary(input: SimulationInput, { iterations, requests }: SimulationResult): string {
  let mostUsed = 0;
  for (const { blocks } of iterations) mostUsed = Math.max(mostUsed, blocks.used);
  const pauses = requests.reduce((sum, request) => sum + request.pauses, 0);
  const share = Math.round((100 * mostUsed) / input.numBlocks);
  const counts = [counted(requests.length, 'request'), counted(iterations.length, 'iteration')];
  counts.push(counted(pauses, 'pause'), `at most ${mostUsed} blocks (${share} %)`);
  return `${input.policy}, ${input.numBlocks} blocks of ${input.tokensPerBlock} tokens\n${counts.join(', ')}`;
}

function label(id: SimulationId): string {
  const text = String(id).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
  return text.length <= MAX_LABEL ? text : `${text.slice(0, MAX_LABEL - 1)}…`;
}

/** The ruler: above every tenth column the number of its first iteration, where there is room. */
function ruler(columns: number, perColumn: number): string {
  let text = '';
  for (let column = 0; column < columns; column += 10) {
    const number = String(column * perColumn);
    if (column + number.length <= columns || column === 0) text = text.padEnd(column) + number;
  }
  return text;
}

function requestStates(
  { iterations }: SimulationResult,
  rows: readonly { id: SimulationId }[],
  grid: Grid,
): string[] {
  const index = new Map(rows.map(({ id }, row) => [id, row]));
  const cells = rows.map(() => new Uint8Array(grid.columns));
  const isPaused = rows.map(() => false);
  for (const { iteration, active, scheduled, paused } of iterations) {
    const column = Math.floor(iteration / grid.perColumn);
    const show = (id: SimulationId, state: (row: number) => string) => {
      const row = index.get(id);
      if (row === undefined) return;
      cells[row]![column] = Math.max(cells[row]![column]!, STATES.indexOf(state(row)));
    };
    for (const id of paused) {
      const row = index.get(id);
      if (row !== undefined) isPaused[row] = true;
    }
    const running = new Set(scheduled.map(({ id }) => id));
    for (const { id, phase } of scheduled) {
      show(id, (row) => {
        isPaused[row] = false;
        return phase === 'context' ? 'C' : '=';
      });
    }
    for (const id of active) {
      if (!running.has(id)) show(id, (row) => (isPaused[row] ? 'p' : '.'));
    }
  }
  return cells.map((row) => Array.from(row, (state) => STATES[state]).join(''));
}

function blockBar({ numBlocks }: SimulationInput, { iterations }: SimulationResult, grid: Grid): string {
  const most = new Array<number>(grid.columns).fill(0);
  for (const { iteration, blocks } of iterations) {
    const column = Math.floor(iteration / grid.perColumn);
    most[column] = Math.max(most[column]!, blocks.used);
  }
  return most.map((used) => BARS[Math.ceil((used / numBlocks) * (BARS.length - 1))]).join('');
}
