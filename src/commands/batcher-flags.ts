import { COUNT, mustBe, numberIn, type Values, wholeNumber } from '../../base/option-values.js';
import { UsageError } from '../errors/user-errors.js';

/** Flags of `skein simulate --batcher` as commander gives them. */
export interface BatcherFlags {
  batcher: string;
  rate?: string;
  arrivals?: 'poisson' | 'constant';
  requests?: string;
  rows?: string;
  batchUs?: string;
  rowUs?: string;
  instances?: string;
  trace?: string;
  seed?: string;
  json?: boolean;
}

/** A load for the dynamic batcher, and what the model does with it. */
export interface BatcherLoad {
  rate: number;
  arrivals: 'poisson' | 'constant';
  requests: number;
  /** Rows of a request, drawn evenly. */
  rows: readonly number[];
  computeUs: { batch: number; row: number };
  /** Absent: as many as the configuration has. */
  instances?: number;
  /** A file of requests in place of drawn ones. */
  trace?: string;
  seed: number;
}

export const MAX_REQUESTS = 1_000_000;
const MAX_ROWS = 65_536;
const MAX_US = 1e9;
const MICROSECONDS = numberIn({ min: 0, max: MAX_US, integer: false });
const DRAWN = ['rate', 'arrivals', 'requests', 'rows', 'seed'] as const;

/** @throws UsageError for a flag that is wrong */
export function batcherLoad(flags: BatcherFlags): BatcherLoad {
  const { trace, arrivals = 'poisson' } = flags;
  const excluded = DRAWN.find((name) => trace !== undefined && flags[name] !== undefined);
  if (excluded !== undefined)
    throw new UsageError(`--${excluded} and --trace exclude each other: a trace says it for each request.`);
  return {
    rate: numberOf('--rate', flags.rate ?? '1000', numberIn({ min: 1e-3, max: 1e7, integer: false })),
    arrivals,
    requests: numberOf('--requests', flags.requests ?? '10000', wholeNumber(1, MAX_REQUESTS)),
    rows: (flags.rows ?? '1').split(',').map((text) => numberOf('--rows', text, wholeNumber(1, MAX_ROWS))),
    computeUs: {
      batch: numberOf('--batch-us', flags.batchUs ?? '1000', MICROSECONDS),
      row: numberOf('--row-us', flags.rowUs ?? '100', MICROSECONDS),
    },
    ...(flags.instances === undefined
      ? {}
      : { instances: numberOf('--instances', flags.instances, wholeNumber(1, 1024)) }),
    ...(trace === undefined ? {} : { trace }),
    seed: numberOf('--seed', flags.seed ?? '1', COUNT),
  };
}

function numberOf(flag: string, text: string, values: Values<number>): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (values.accepts(value)) return value;
  throw new UsageError(`${flag} is "${text}"; it must be ${mustBe(values, value)}.`);
}
