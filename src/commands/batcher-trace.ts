import { readFileSync, statSync } from 'node:fs';
import { mustBe, numberIn, shown, TEXT, type Values, wholeNumber } from '../../base/option-values.js';
import type { BatcherArrival } from '../../engine/simulation/batcher-simulation.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import { MAX_REQUESTS } from './batcher-flags.js';

const MAX_FILE_BYTES = 256 * 2 ** 20;
const MICROSECONDS = numberIn({ min: 0, max: Number.MAX_SAFE_INTEGER, integer: false });

/** Fields of a line, and what they are where it leaves them out; `at_us` it has to have. */
const FIELDS: Readonly<Record<string, { values: Values; absent?: number | string }>> = {
  at_us: { values: MICROSECONDS },
  rows: { values: wholeNumber(1, 65_536), absent: 1 },
  priority: { values: wholeNumber(0, Number.MAX_SAFE_INTEGER), absent: 0 },
  timeout_us: { values: MICROSECONDS, absent: 0 },
  shape: { values: TEXT, absent: '' },
};

/**
 * Reads the requests of a trace: a JSON object a line, in any order of their times.
 * @throws UsageError with file, line and field
 */
export function readBatcherTrace(path: string): BatcherArrival[] {
  const arrivals: BatcherArrival[] = [];
  for (const [index, line] of readText(path).split('\n').entries()) {
    if (line.trim() === '') continue;
    if (arrivals.length === MAX_REQUESTS)
      throw wrong(path, index, `a trace has at most ${MAX_REQUESTS} requests`);
    arrivals.push(requestOf(path, index, line));
  }
  if (arrivals.length === 0) throw new UsageError(`The trace ${path} has no request.`);
  return arrivals.sort((one, other) => one.atUs - other.atUs);
}

function readText(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, more than ${MAX_FILE_BYTES}`);
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UsageError(`The trace ${path} cannot be read: ${fileProblem(error)}`);
  }
}

function requestOf(path: string, index: number, line: string): BatcherArrival {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    throw wrong(path, index, `the line is ${shown(line)}; it must be a JSON object`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw wrong(path, index, `the line is ${shown(given)}; it must be a JSON object`);
  const stranger = Object.keys(given).find((name) => !Object.hasOwn(FIELDS, name));
  if (stranger !== undefined)
    throw wrong(path, index, `there is no field ${stranger}; fields: ${Object.keys(FIELDS).join(', ')}`);
  const read = Object.entries(FIELDS).map(([name, { values, absent }]) => {
    const value = (given as Record<string, unknown>)[name] ?? absent;
    if (values.accepts(value)) return [name, value] as const;
    throw wrong(path, index, `${name} is ${shown(value)}; it must be ${mustBe(values, value)}`);
  });
  const fields = Object.fromEntries(read) as Record<string, number> & { shape: string };
  return {
    atUs: fields.at_us!,
    rows: fields.rows!,
    priority: fields.priority!,
    timeoutUs: fields.timeout_us!,
    fit: fields.shape,
  };
}

function wrong(path: string, index: number, text: string): UsageError {
  return new UsageError(`${path}:${index + 1}: ${text}.`);
}
