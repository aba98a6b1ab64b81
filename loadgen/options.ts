import * as z from 'zod';
import { BACKEND_NAMES } from './backends/backend.js';
import { InputError } from './errors.js';
import { SLO_PRESETS } from './metrics/slo.js';

const rate = z.number().positive().max(1e6);
const count = z.int().positive();
const seconds = z.number().positive().max(86_400);

const length = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), tokens: count }),
  z.strictObject({ kind: z.literal('uniform'), min: count, max: count }),
  z.strictObject({
    kind: z.literal('lognormal'),
    median: count,
    sigma: z.number().positive().max(4),
    max: count,
  }),
]);

const arrivals = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('concurrency'), concurrency: count.max(100_000) }),
  z.strictObject({ kind: z.literal('constant'), rate }),
  z.strictObject({ kind: z.literal('poisson'), rate }),
  z.strictObject({ kind: z.literal('gamma'), rate, burstiness: z.number().positive().max(1000) }),
  z.strictObject({ kind: z.literal('burst'), rate, size: count }),
  z.strictObject({ kind: z.literal('ramp'), from: z.number().nonnegative(), to: rate, seconds }),
  z.strictObject({ kind: z.literal('max') }),
  z.strictObject({ kind: z.literal('trace'), file: z.string(), speed: z.number().positive() }),
]);

const tokens = { inputTokens: length, outputTokens: length };
const samples = z.union([count, z.literal(Number.POSITIVE_INFINITY)]).default(Number.POSITIVE_INFINITY);

const data = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('random'),
    ...tokens,
    prefix: z.strictObject({ tokens: count, count }).optional(),
    samples,
  }),
  z.strictObject({
    kind: z.literal('conversations'),
    ...tokens,
    turns: count.max(1000),
    thinkSeconds: z.number().nonnegative().max(3600).default(0),
    systemTokens: z.int().nonnegative().default(0),
    samples,
  }),
  z.strictObject({
    kind: z.literal('jsonl'),
    file: z.string(),
    outputTokens: length.nullable().default(null),
    shuffle: z.boolean().default(false),
    multiTurn: z.boolean().default(false),
  }),
  /** Prompts (or lengths) come from the trace that gives the times. */
  z.strictObject({ kind: z.literal('trace') }),
]);

const slo = z.strictObject({
  ttftMs: z.number().positive().optional(),
  tpotMs: z.number().positive().optional(),
  e2eMs: z.number().positive().optional(),
});

const sweep = z.discriminatedUnion('over', [
  z.strictObject({ over: z.literal('rate'), points: z.array(rate).min(1).max(100) }),
  z.strictObject({ over: z.literal('concurrency'), points: z.array(count).min(1).max(100) }),
  /** Doubles rate or concurrency from `from` until the server is saturated, then halves the interval `refine` times. */
  z.strictObject({
    over: z.literal('auto'),
    of: z.enum(['rate', 'concurrency']),
    from: rate,
    refine: z.int().min(0).max(8).default(2),
  }),
]);

const benchOptions = z.strictObject({
  /** Base URL of an OpenAI-compatible server, with or without /v1. */
  url: z.string(),
  backend: z.enum(BACKEND_NAMES).default('chat'),
  /** Name of the model; null: the first in /v1/models. */
  model: z.string().nullable().default(null),
  /** Path in place of the backend's own. */
  path: z.string().startsWith('/').optional(),
  apiKey: z.string().optional(),
  headers: z.record(z.string(), z.string()).default({}),
  /** PEM file of authorities for checking an https server's certificate, in place of Node's. */
  ca: z.string().optional(),
  /** Accepts any certificate. */
  insecure: z.boolean().default(false),
  /** Fields for every body. */
  fields: z.record(z.string(), z.unknown()).default({}),
  stream: z.boolean().default(true),
  ignoreEos: z.boolean().default(true),
  arrivals: arrivals.default({ kind: 'concurrency', concurrency: 8 }),
  data: data.default({
    kind: 'random',
    inputTokens: { kind: 'fixed', tokens: 128 },
    outputTokens: { kind: 'fixed', tokens: 64 },
    samples: Number.POSITIVE_INFINITY,
  }),
  seed: z.int().default(0),
  /** Number of requests in the run; without a duration too, DEFAULT_REQUESTS. */
  requests: count.max(100_000_000).nullable().default(null),
  /** Seconds in which requests are sent. */
  duration: seconds.nullable().default(null),
  /** Seconds after which a run is cut off, even with requests in flight. */
  maxDuration: seconds.default(600),
  /** Number of requests before the run, whose results do not count. */
  warmup: z.int().nonnegative().max(100_000).default(4),
  /** Number of worker processes; null: as many as the machine has room for. */
  workers: count.max(256).nullable().default(null),
  /** Number of connections opened ahead, over all workers; null: chosen by the arrivals. */
  connections: z.int().nonnegative().max(100_000).nullable().default(null),
  keepAlive: z.boolean().default(true),
  maxInFlight: count.max(1_000_000).default(10_000),
  /** Seconds that a request may take; stall: seconds that it may be silent. */
  timeout: seconds.default(300),
  stall: seconds.default(60),
  retries: z.int().nonnegative().max(100).default(0),
  busyWait: z.boolean().default(false),
  cpuAffinity: z.boolean().default(true),
  /** Measures the tokens of a word with two requests, where the data has lengths. */
  calibrate: z.boolean().default(true),
  slo: z
    .union([z.enum(Object.keys(SLO_PRESETS) as [keyof typeof SLO_PRESETS]), slo])
    .nullable()
    .default(null),
  repeat: count.max(100).default(1),
  sweep: sweep.nullable().default(null),
  /** Reads the server's /metrics and /stats every second. */
  scrape: z.boolean().default(true),
});

/** Options of `runBenchmark`; only `url` is required. */
export type BenchOptions = z.input<typeof benchOptions>;
export type FullBenchOptions = z.output<typeof benchOptions>;

export const DEFAULT_REQUESTS = 100;

/** Checks options and adds defaults. @throws InputError with one sentence about the first fault. */
export function parseOptions(options: BenchOptions): FullBenchOptions {
  const parsed = benchOptions.safeParse(options);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue!.path.length === 0 ? '' : `${issue!.path.join('.')}: `;
    throw new InputError(`${where}${issue!.message}.`);
  }
  const full = parsed.data;
  const { origin } = serverUrl(full.url);
  if ((full.ca !== undefined || full.insecure) && !origin.startsWith('https:')) {
    throw new InputError(`A certificate is for https: the URL is ${full.url}.`);
  }
  if (full.ca !== undefined && full.insecure) {
    throw new InputError('Certificates are either checked against ca or, with insecure, not at all.');
  }
  const { arrivals, data, sweep } = full;
  if (data.kind === 'trace' && arrivals.kind !== 'trace') {
    throw new InputError('The data of a trace needs its times: arrivals.kind must be trace.');
  }
  if (arrivals.kind === 'trace' && sweep !== null) {
    throw new InputError('A trace has its own rate: it cannot be swept.');
  }
  if (arrivals.kind === 'max' && full.requests === null && full.duration !== null) {
    throw new InputError('Everything at once has no duration: give a number of requests.');
  }
  return full;
}

/** Origin of a URL, and the part before /v1 of its paths. @throws InputError. */
export function serverUrl(text: string): { origin: string; prefix: string } {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InputError(`${JSON.stringify(text)} is no URL: expected http://HOST:PORT or https://HOST.`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError(`The URL ${text} has the scheme ${url.protocol}: expected http: or https:.`);
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '') };
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|0\.0\.0\.0|\[::\]|.*\.localhost)$/i;

/** True where the server runs on this machine, by its name. */
export function isThisMachine(url: string): boolean {
  return LOOPBACK.test(new URL(url).hostname);
}
