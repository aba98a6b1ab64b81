import { messageOf } from '../../base/error-text.js';
import type { BackendName } from '../../loadgen/backends/backend.js';
import { parseLength } from '../../loadgen/data/lengths.js';
import { SLO_PRESETS, type Slo, type SloPreset } from '../../loadgen/metrics/slo.js';
import type { BenchOptions } from '../../loadgen/options.js';
import { UsageError } from '../errors/user-errors.js';
import { flagName } from '../options/table.js';

/** Flags as commander gives them: texts, and booleans for switches. */
export interface BenchFlags {
  model?: string;
  backend?: BackendName;
  path?: string;
  apiKey?: string;
  header?: string[];
  ca?: string;
  insecure?: boolean;
  body?: string;
  stream: boolean;
  ignoreEos: boolean;
  quick?: boolean;
  concurrency?: string;
  rate?: string;
  arrivals?: 'poisson' | 'constant' | 'gamma' | 'burst' | 'ramp' | 'max';
  burstiness?: string;
  burstSize?: string;
  rampFrom?: string;
  rampSeconds?: string;
  trace?: string;
  speed?: string;
  requests?: string;
  duration?: string;
  maxDuration?: string;
  warmup?: string;
  seed?: string;
  repeat?: string;
  data?: 'random' | 'conversations' | 'jsonl' | 'trace';
  inputTokens?: string;
  outputTokens?: string;
  prefixTokens?: string;
  prefixes?: string;
  samples?: string;
  turns?: string;
  thinkTime?: string;
  systemTokens?: string;
  file?: string;
  shuffle?: boolean;
  multiTurn?: boolean;
  slo?: string;
  timeout?: string;
  stall?: string;
  retries?: string;
  workers?: string;
  connections?: string;
  maxInFlight?: string;
  keepAlive: boolean;
  busyWait?: boolean;
  calibrate: boolean;
  sweep?: string;
  refine?: string;
  cpuAffinity: boolean;
  scrape: boolean;
  html?: string;
  csv?: string;
  output?: string;
  quiet?: boolean;
  yes?: boolean;
}

type Name = keyof BenchFlags;
/** Flags of numbers whose option has the same name. */
const NUMBERS = [
  'requests',
  'duration',
  'maxDuration',
  'warmup',
  'seed',
  'repeat',
  'timeout',
  'stall',
  'retries',
  'workers',
  'connections',
  'maxInFlight',
] as const satisfies Name[];

/** Makes benchmark options of flags. @throws UsageError naming the wrong flag. */
export function benchOptionsOf(
  url: string,
  flags: BenchFlags,
  environment: Readonly<Record<string, string | undefined>>,
): BenchOptions {
  const options: BenchOptions = {
    url,
    stream: flags.stream,
    ignoreEos: flags.ignoreEos,
    keepAlive: flags.keepAlive,
    calibrate: flags.calibrate,
    busyWait: flags.busyWait === true,
    cpuAffinity: flags.cpuAffinity,
    scrape: flags.scrape,
    arrivals: arrivalsOf(flags),
    data: dataOf(flags),
    headers: headersOf(flags.header ?? []),
  };
  if (flags.model !== undefined) options.model = flags.model;
  if (flags.backend !== undefined) options.backend = flags.backend;
  if (flags.path !== undefined) options.path = flags.path;
  if (flags.ca !== undefined) options.ca = flags.ca;
  if (flags.insecure) options.insecure = true;
  const apiKey =
    flags.apiKey ?? environment.SKEIN_API_KEY?.split(',')[0]?.trim() ?? environment.OPENAI_API_KEY;
  if (apiKey !== undefined) options.apiKey = apiKey;
  if (flags.body !== undefined) options.fields = fieldsOf(flags.body);
  if (flags.sweep !== undefined) options.sweep = sweepOf(flags);
  needs(flags, 'refine', options.sweep?.over === 'auto', 'a --sweep that doubles');
  if (flags.slo !== undefined) options.slo = sloOf(flags.slo);
  for (const name of NUMBERS) {
    const value = numberOf(flags, name);
    if (value !== undefined) options[name] = value;
  }
  return options;
}

function arrivalsOf(flags: BenchFlags): NonNullable<BenchOptions['arrivals']> {
  refuseTogether(flags, 'concurrency', 'rate', 'trace');
  refuseTogether(flags, 'concurrency', 'arrivals', 'trace');
  needs(flags, 'burstiness', flags.arrivals === 'gamma', '--arrivals gamma');
  needs(flags, 'burstSize', flags.arrivals === 'burst', '--arrivals burst');
  needs(flags, 'rampFrom', flags.arrivals === 'ramp', '--arrivals ramp');
  needs(flags, 'rampSeconds', flags.arrivals === 'ramp', '--arrivals ramp');
  needs(flags, 'speed', flags.trace !== undefined, '--trace FILE');
  if (flags.trace !== undefined) {
    return { kind: 'trace', file: flags.trace, speed: numberOf(flags, 'speed') ?? 1 };
  }
  if (flags.arrivals === 'max') {
    needs(flags, 'rate', false, 'arrivals that have one');
    return { kind: 'max' };
  }
  const rate = numberOf(flags, 'rate') ?? (flags.sweep?.startsWith('rate') ? 1 : undefined);
  if (rate === undefined) {
    if (flags.arrivals !== undefined) throw new UsageError(`--arrivals ${flags.arrivals} needs --rate R.`);
    return { kind: 'concurrency', concurrency: numberOf(flags, 'concurrency') ?? 8 };
  }
  switch (flags.arrivals ?? 'poisson') {
    case 'gamma':
      return { kind: 'gamma', rate, burstiness: required(flags, 'burstiness', '--arrivals gamma') };
    case 'burst':
      return { kind: 'burst', rate, size: required(flags, 'burstSize', '--arrivals burst') };
    case 'ramp': {
      const seconds = required(flags, 'rampSeconds', '--arrivals ramp');
      return { kind: 'ramp', from: numberOf(flags, 'rampFrom') ?? 0, to: rate, seconds };
    }
    case 'constant':
      return { kind: 'constant', rate };
    default:
      return { kind: 'poisson', rate };
  }
}

function dataOf(flags: BenchFlags): NonNullable<BenchOptions['data']> {
  const kind = flags.data ?? (flags.file !== undefined ? 'jsonl' : 'random');
  for (const name of ['turns', 'thinkTime', 'systemTokens'] as const) {
    needs(flags, name, kind === 'conversations', '--data conversations');
  }
  for (const name of ['file', 'shuffle', 'multiTurn'] as const) {
    needs(flags, name, kind === 'jsonl', '--data jsonl');
  }
  needs(flags, 'prefixTokens', kind === 'random', '--data random');
  needs(flags, 'prefixes', flags.prefixTokens !== undefined, '--prefix-tokens N');
  if (kind === 'trace') {
    if (flags.trace === undefined) throw new UsageError('--data trace needs --trace FILE.');
    return { kind };
  }
  const outputTokens =
    flags.outputTokens === undefined ? null : lengthOf('--output-tokens', flags.outputTokens);
  if (kind === 'jsonl') {
    if (flags.file === undefined) throw new UsageError('--data jsonl needs --file FILE.');
    const { file, shuffle = false, multiTurn = false } = flags;
    return { kind, file, outputTokens, shuffle, multiTurn };
  }
  const lengths = {
    inputTokens: lengthOf('--input-tokens', flags.inputTokens ?? '128'),
    outputTokens: outputTokens ?? lengthOf('--output-tokens', '64'),
    samples: numberOf(flags, 'samples') ?? Number.POSITIVE_INFINITY,
  };
  if (kind === 'conversations') {
    return {
      kind,
      ...lengths,
      turns: numberOf(flags, 'turns') ?? 3,
      thinkSeconds: numberOf(flags, 'thinkTime') ?? 0,
      systemTokens: numberOf(flags, 'systemTokens') ?? 0,
    };
  }
  const tokens = numberOf(flags, 'prefixTokens');
  if (tokens === undefined) return { kind, ...lengths };
  return { kind, ...lengths, prefix: { tokens, count: numberOf(flags, 'prefixes') ?? 1 } };
}

function lengthOf(flag: string, text: string): ReturnType<typeof parseLength> {
  try {
    return parseLength(text);
  } catch (error) {
    throw new UsageError(`${flag}: ${messageOf(error)}.`);
  }
}

function headersOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined) {
        throw new UsageError(`--header: expected "NAME: VALUE", found "${text}".`);
      }
      return [name.toLowerCase(), value];
    }),
  );
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {}
  throw new UsageError(`--body: expected a JSON object, found ${text}.`);
}

/**
 * Parses a sweep: `rate=1,2,4`, `concurrency=1,8`, or one of the words alone, which doubles from --rate or
 * --concurrency (1) on.
 */
function sweepOf(flags: BenchFlags): NonNullable<BenchOptions['sweep']> {
  const [over, list, ...rest] = flags.sweep!.split('=');
  if ((over !== 'rate' && over !== 'concurrency') || rest.length > 0) {
    throw new UsageError(
      `--sweep: expected rate=LIST, concurrency=LIST, rate or concurrency, found "${flags.sweep}".`,
    );
  }
  if (list === undefined) {
    const from = numberOf(flags, over) ?? 1;
    return { over: 'auto', of: over, from, refine: numberOf(flags, 'refine') ?? 2 };
  }
  refuseTogether(flags, 'sweep', over);
  const points = list.split(',').map(Number);
  if (!points.every((point) => point > 0)) {
    throw new UsageError(`--sweep: expected numbers above 0 after ${over}=, found "${list}".`);
  }
  return { over, points };
}

/** Parses a latency goal: a preset, or limits in milliseconds. */
export function sloOf(text: string): SloPreset | Slo {
  if (text in SLO_PRESETS) return text as SloPreset;
  const slo: Slo = {};
  for (const part of text.split(',')) {
    const [, name, value] = /^(ttft|tpot|e2e)=(\d+(?:\.\d+)?)$/.exec(part.trim()) ?? [];
    if (name === undefined || !(Number(value) > 0)) {
      throw new UsageError(
        `--slo: expected ttft=MS,tpot=MS,e2e=MS or one of ${Object.keys(SLO_PRESETS).join(', ')}, found "${text}".`,
      );
    }
    slo[`${name as 'ttft' | 'tpot' | 'e2e'}Ms`] = Number(value);
  }
  return slo;
}

/** Parses a flag of a number. @throws UsageError for other texts; the library checks the range. */
function numberOf(flags: BenchFlags, name: Name): number | undefined {
  const text = flags[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (String(text).trim() === '' || Number.isNaN(value)) {
    throw new UsageError(`${flagOf(name)}: expected a number, found "${text}".`);
  }
  return value;
}

function required(flags: BenchFlags, name: Name, why: string): number {
  const value = numberOf(flags, name);
  if (value === undefined) throw new UsageError(`${why} needs ${flagOf(name)}.`);
  return value;
}

function refuseTogether(flags: BenchFlags, ...names: Name[]): void {
  const given = names.filter((name) => flags[name] !== undefined);
  if (given.length > 1) throw new UsageError(`${given.map(flagOf).join(' and ')} exclude one another.`);
}

function needs(flags: BenchFlags, name: Name, isThere: boolean, what: string): void {
  if (flags[name] !== undefined && !isThere) throw new UsageError(`${flagOf(name)} is for ${what}.`);
}

function flagOf(name: string): string {
  return `--${flagName(name)}`;
}
