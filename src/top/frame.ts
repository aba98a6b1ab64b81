import { plainLine } from '../terminal/plain-text.js';
import type { Latency, ModelPicture, RequestPicture } from './model-picture.js';

export interface FrameLine {
  text: string;
  style?: 'bold' | 'dim' | 'inverse';
}

export interface FrameOptions {
  address: string;
  columns: number;
  /** Number of rows of the whole frame; its last line reports how many requests do not fit. */
  rows: number;
  /** Number of requests scrolled past. */
  offset: number;
  /** Why the server is away; null: it is there. */
  problem: string | null;
  /** Index of this model among those of the server. */
  place: { index: number; count: number };
  /** Help on keys; '' where no keys can be pressed. */
  keys: string;
}

/** One screen about a model: no line wider than the terminal, no more lines than it has. */
export function frame(picture: ModelPicture, options: FrameOptions): FrameLine[] {
  const { columns, rows, offset } = options;
  const table = requestTable(picture.requests, columns);
  const head: FrameLine[] = [
    { text: `skein top  ${picture.model}${placeText(options.place)}  ${options.address}`, style: 'bold' },
    ...(options.problem === null
      ? []
      : [{ text: `away: ${options.problem} Trying again.`, style: 'inverse' as const }]),
    { text: speedLine(picture) },
    { text: kvLine(picture, columns) },
    ...latencyLines(picture),
    { text: '' },
    { text: table.head, style: 'bold' },
  ];
  const foot: FrameLine[] = options.keys === '' ? [] : [{ text: options.keys, style: 'dim' }];
  const room = Math.max(0, rows - head.length - foot.length);
  const hidden = table.rows.length - offset > room;
  const shown = table.rows.slice(offset, offset + (hidden ? Math.max(0, room - 1) : room));
  const more = table.rows.length - offset - shown.length;
  const body = shown.map((text): FrameLine => ({ text }));
  if (more > 0 && room > 0) body.push({ text: `and ${more} more`, style: 'dim' });
  if (table.rows.length === 0 && room > 0) body.push({ text: 'nothing is in flight', style: 'dim' });
  const lines = [...head, ...body];
  return [...lines.slice(0, Math.max(0, rows - foot.length)), ...foot]
    .slice(0, rows)
    .map((line) => ({ ...line, text: fitted(line.text, columns) }));
}

/** A text at the terminal's width. Blanks between columns stay, unlike in plainLine. */
function fitted(text: string, columns: number): string {
  const characters = Array.from(text);
  return characters.length <= columns ? text : `${characters.slice(0, Math.max(0, columns - 1)).join('')}…`;
}

function placeText({ index, count }: FrameOptions['place']): string {
  return count === 1 ? '' : ` (${index + 1} of ${count})`;
}

function speedLine(picture: ModelPicture): string {
  const { tokensPerSecond, promptTokensPerSecond, iterationMs, batch, maxBatch, queued } = picture;
  return [
    `tokens/s ${numberText(tokensPerSecond)} (prompt ${numberText(promptTokensPerSecond)})`,
    `batch ${batch}${maxBatch === null ? '' : ` of ${maxBatch}`}`,
    `iteration ${iterationMs === null ? '-' : `${iterationMs.toFixed(1)} ms`}`,
    `queue ${queued}`,
  ].join('   ');
}

function kvLine({ kv }: ModelPicture, columns: number): string {
  const taken = kv.used + kv.shared;
  const percent = (count: number) => Math.round((100 * count) / Math.max(1, kv.blocks));
  const text = `${percent(taken)} % used, ${percent(kv.cached)} % cached of ${kv.blocks * kv.tokensPerBlock} tokens`;
  const width = Math.min(40, columns - text.length - 6);
  if (width < 8) return `KV ${text}`;
  const cells = (count: number) => Math.round((width * count) / Math.max(1, kv.blocks));
  const used = taken > 0 ? Math.max(1, cells(taken)) : 0;
  const cached = Math.min(width - used, kv.cached > 0 ? Math.max(1, cells(kv.cached)) : 0);
  return `KV ${'█'.repeat(used)}${'▒'.repeat(cached)}${'░'.repeat(width - used - cached)} ${text}`;
}

function latencyLines({ firstTokenMs, interTokenMs }: ModelPicture): FrameLine[] {
  const text = ({ p50, p99 }: Latency) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
  const parts = [
    ...(firstTokenMs === null ? [] : [`first token ${text(firstTokenMs)}`]),
    ...(interTokenMs === null ? [] : [`between tokens ${text(interTokenMs)}`]),
  ];
  return parts.length === 0 ? [] : [{ text: parts.join('   ') }];
}

type Column = [head: string, cell: (request: RequestPicture) => string];

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => String(id)],
  ['state', ({ state, pauses }) => (pauses > 0 && state !== 'paused' ? `${state} (resumed)` : state)],
  ['age', ({ ageMs }) => `${(ageMs / 1000).toFixed(1)} s`],
  ['prompt', promptText],
  ['generated', ({ generated, maxNewTokens }) => `${generated}/${maxNewTokens}`],
  ['blocks', ({ blocks }) => String(blocks)],
  ['cached', ({ cachedTokens }) => String(cachedTokens)],
];
const LABEL: Column = ['request', ({ label }) => plainLine(label, 64)];
/** Columns for a narrow terminal. */
const NARROW = COLUMNS.filter(([head]) => head !== 'age' && head !== 'cached');
const NARROW_COLUMNS = 60;
const TO_THE_LEFT: ReadonlySet<string> = new Set(['state', 'request']);

/** Text of the prompt's length; while its context is computed, with the tokens done. */
function promptText({ state, promptTokens, contextDone, contextTokens }: RequestPicture): string {
  return state === 'context' ? `${contextDone}/${contextTokens}` : String(promptTokens);
}

function requestTable(
  requests: readonly RequestPicture[],
  columns: number,
): { head: string; rows: string[] } {
  const shown = [...(columns < NARROW_COLUMNS ? NARROW : COLUMNS), LABEL];
  const cells = requests.map((request) => shown.map(([, cell]) => cell(request)));
  const widths = shown.map(([head], at) => Math.max(head.length, ...cells.map((row) => row[at]!.length)));
  const line = (row: readonly string[]) =>
    row
      .map((text, at) =>
        TO_THE_LEFT.has(shown[at]![0]) ? text.padEnd(widths[at]!) : text.padStart(widths[at]!),
      )
      .join('  ')
      .trimEnd();
  return { head: line(shown.map(([head]) => head)), rows: cells.map(line) };
}

function numberText(value: number | null): string {
  return value === null ? '-' : value < 10 ? value.toFixed(1) : value.toFixed(0);
}
