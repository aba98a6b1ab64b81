import { CsvError, type Info, parse as parseCsv } from 'csv-parse/sync';
import { linesOf, readDataFile } from '../data/jsonl.js';
import { drawWords, PLAIN_SCALE, type TokenScale, wordsFor } from '../data/words.js';
import { InputError } from '../errors.js';
import { Random } from '../random.js';
import type { Dataset } from '../samples.js';

const SAMPLES = 7;
const BLOCKS = 8;
/** Number of tokens that one id of Mooncake's hash_ids stands for. */
const MOONCAKE_BLOCK = 512;

/** A request of a trace. */
interface Row {
  /** Seconds from the first request. */
  seconds: number;
  promptTokens: number | null;
  outputTokens: number | null;
  prompt: string | null;
  /** Ids of blocks: prompts whose ids begin alike begin with the same text. */
  blocks: readonly number[] | null;
}

export interface Trace {
  times: readonly number[];
  /** Data of the trace; null where it has only times. */
  dataset: Dataset | null;
}

const NAMES: Readonly<Record<keyof Omit<Row, 'blocks'>, readonly string[]>> = {
  seconds: ['timestamp', 'time', 'arrival_time', 'arrived_at'],
  promptTokens: [
    'input_length',
    'contexttokens',
    'request tokens',
    'prompt_tokens',
    'input_tokens',
    'num_prefill_tokens',
  ],
  outputTokens: [
    'output_length',
    'generatedtokens',
    'response tokens',
    'completion_tokens',
    'output_tokens',
    'num_decode_tokens',
  ],
  prompt: ['prompt', 'text'],
};

/**
 * Reads times and lengths of a recorded load: JSON lines as Mooncake's (`timestamp` in milliseconds, `input_length`,
 * `output_length`, `hash_ids`) or with seconds as `time`, or CSV with a header as Azure's (TIMESTAMP, ContextTokens,
 * GeneratedTokens) and BurstGPT's (Timestamp, Request tokens, Response tokens).
 * @throws InputError naming file and line.
 */
export function readTrace(file: string, seed: number, scale: TokenScale = PLAIN_SCALE): Trace {
  const text = readDataFile(file);
  const rows = text.trimStart().startsWith('{') ? jsonRows(linesOf(text), file) : csvRows(text, file);
  if (rows.length === 0) throw new InputError(`The trace ${file} has no lines with a time.`);
  rows.sort((a, b) => a.seconds - b.seconds);
  const start = rows[0]!.seconds;
  const times = rows.map(({ seconds }) => seconds - start);
  const hasData = rows.every(({ prompt, promptTokens }) => prompt !== null || promptTokens !== null);
  return { times, dataset: hasData ? traceDataset(rows, file, seed, scale) : null };
}

function traceDataset(rows: readonly Row[], file: string, seed: number, scale: TokenScale): Dataset {
  return {
    description: { kind: 'trace', file, samples: rows.length, tokensPerWord: scale.perWord },
    size: rows.length,
    sample: (index) => {
      const { prompt, promptTokens, outputTokens, blocks } = rows[index]!;
      if (prompt !== null) return { turns: [{ prompt, maxTokens: outputTokens }] };
      const text = blockText(blocks, promptTokens!, index, seed, scale);
      return { turns: [{ prompt: text, maxTokens: outputTokens, promptTokens: promptTokens! }] };
    },
  };
}

function blockText(
  blocks: readonly number[] | null,
  tokens: number,
  index: number,
  seed: number,
  scale: TokenScale,
): string {
  const own = new Random(seed, SAMPLES, index);
  const words = wordsFor(tokens, scale);
  if (blocks === null) return drawWords(words, own);
  const perBlock = wordsFor(MOONCAKE_BLOCK, { ...scale, fixed: 0 });
  const parts = blocks.map((id) => drawWords(perBlock, new Random(seed, BLOCKS, id)));
  const all = parts.join(' ').split(' ').slice(0, words);
  const missing = words - all.length;
  return missing > 0 ? `${all.join(' ')} ${drawWords(missing, own)}`.trim() : all.join(' ');
}

function jsonRows(lines: readonly string[], file: string): Row[] {
  return lines.map((text, i) => {
    let value: Record<string, unknown>;
    try {
      value = JSON.parse(text) as Record<string, unknown>;
    } catch {
      throw new InputError(`The trace ${file}, line ${i + 1} is not JSON.`);
    }
    const row = rowOf((name) => value[name], Object.keys(value), `${file}, line ${i + 1}`);
    // Mooncake's times are in milliseconds.
    if ('timestamp' in value && typeof value.timestamp === 'number') row.seconds /= 1000;
    row.blocks = Array.isArray(value.hash_ids) ? value.hash_ids.map(Number) : null;
    return row;
  });
}

/** Rows of a CSV by RFC 4180: quoted cells may hold commas, quotes and line ends. */
function csvRows(text: string, file: string): Row[] {
  let records: { record: string[]; info: Info }[];
  try {
    records = parseCsv(text, { info: true, skip_empty_lines: true, trim: true }) as unknown as typeof records;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new InputError(`The trace ${file} is no CSV: ${error.message}.`);
  }
  const [header, ...rows] = records;
  const names = header?.record ?? [];
  return rows.map(({ record, info }) =>
    rowOf((name) => record[names.indexOf(name)], names, `${file}, line ${info.lines}`),
  );
}

function rowOf(read: (name: string) => unknown, names: readonly string[], where: string): Row {
  const find = (field: keyof typeof NAMES) => {
    const name = names.find((candidate) => NAMES[field].includes(candidate.toLowerCase()));
    const value = name === undefined ? undefined : read(name);
    return value === undefined || value === '' ? null : value;
  };
  const count = (field: 'promptTokens' | 'outputTokens') => {
    const value = find(field);
    if (value === null) return null;
    const tokens = Number(value);
    if (!Number.isInteger(tokens) || tokens < 0) {
      throw new InputError(`The trace ${where}: ${JSON.stringify(value)} is no number of tokens.`);
    }
    return Math.max(1, tokens);
  };
  const time = find('seconds');
  const seconds =
    typeof time === 'number' || !Number.isNaN(Number(time)) ? Number(time) : Date.parse(`${time}`) / 1000;
  if (time === null || Number.isNaN(seconds)) {
    throw new InputError(
      `The trace ${where}: expected a time (${NAMES.seconds.join(', ')}), found ${JSON.stringify(time)}.`,
    );
  }
  const prompt = find('prompt');
  return {
    seconds,
    promptTokens: count('promptTokens'),
    outputTokens: count('outputTokens'),
    prompt: typeof prompt === 'string' ? prompt : null,
    blocks: null,
  };
}
