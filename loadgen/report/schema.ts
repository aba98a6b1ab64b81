import * as z from 'zod';
import { LATENCIES } from '../metrics/run-metrics.js';
import { OUTCOMES } from '../outcomes.js';

/** Name and version of the format: readers refuse others. Changes may only add fields. */
export const REPORT_SCHEMA = 'skein-bench/1';

const number = z.number();
const orNull = number.nullable();

const latency = z.object({
  count: number,
  mean: orNull,
  deviation: orNull,
  min: orNull,
  p50: orNull,
  p90: orNull,
  p95: orNull,
  p99: orNull,
  p999: orNull,
  max: orNull,
});

const processHealth = z.object({
  eventLoopUtilization: z.object({ mean: number, max: number }),
  loopDelayP99Ms: number,
  loopDelayMaxMs: number,
  gc: number,
  cpu: z.object({ mean: number, max: number }),
  connectionsOpened: number,
});

const run = z.object({
  /** Name of the run: its point of a sweep, and its repetition. */
  label: z.string(),
  /** Rate or concurrency of the run; null where there is no such number. */
  load: orNull,
  repetition: number,
  arrivals: z.record(z.string(), z.unknown()),
  seed: number,
  /** False for a run that was cut off, with the reason in cutOff; it holds the results until then. */
  complete: z.boolean(),
  cutOff: z.string().nullable(),
  /** Seconds from the start of the schedule to the last answer. */
  seconds: number,
  requests: z.object({
    /** Number of requests, each of which counts under exactly one outcome. */
    total: number,
    planned: orNull,
    outcomes: z.object(
      Object.fromEntries(OUTCOMES.map((outcome) => [outcome, number])) as Record<
        (typeof OUTCOMES)[number],
        typeof number
      >,
    ),
    /** Number of answers with each HTTP status. */
    statuses: z.record(z.string(), number),
    retries: number,
    /** First few messages of failures. */
    messages: z.array(z.object({ request: number, outcome: z.string(), message: z.string() })),
  }),
  throughput: z.object({
    /** Requests a second: offered by the schedule (null for closed loops), sent, and answered. */
    offered: orNull,
    issued: number,
    requests: number,
    outputTokens: number,
    totalTokens: number,
    /** Pieces a second while requests were sent, without the tail in which the last answers end. */
    steadyPieces: number,
  }),
  tokens: z.object({
    prompt: number,
    completion: number,
    /** Number of prompt tokens found in the server's prefix cache, as far as it reports them. */
    cached: number,
    pieces: number,
    /** Number of answers whose tokens the server did not count: each piece counts as one. */
    withoutUsage: number,
    /** Prompts of a requested length, and how far the server's count differs from it. */
    verified: z.object({ requests: number, exact: number, meanError: orNull, maxError: orNull }),
    /** Answers of a requested length, and how many have it. */
    fullLength: z.object({ requests: number, exact: number }),
  }),
  /** Latencies in milliseconds. */
  latencies: z.object(
    Object.fromEntries(LATENCIES.map((name) => [name, latency])) as Record<
      (typeof LATENCIES)[number],
      typeof latency
    >,
  ),
  /** Curve of each latency: [share, milliseconds], from 0 to 1. */
  curves: z.record(z.string(), z.array(z.tuple([number, number]))),
  goodput: z
    .object({
      slo: z.object({ ttftMs: number.optional(), tpotMs: number.optional(), e2eMs: number.optional() }),
      good: number,
      /** Share of all requests, failed ones included. */
      share: number,
      requestsPerSecond: number,
    })
    .nullable(),
  timeline: z.object({
    binMs: number,
    sent: z.array(number),
    completed: z.array(number),
    failed: z.array(number),
    pieces: z.array(number),
    inFlight: z.array(number),
  }),
  client: z.object({
    /** True where the client, not the server, may have shaped these figures. */
    isBottleneck: z.boolean(),
    findings: z.array(z.object({ code: z.string(), isBottleneck: z.boolean(), message: z.string() })),
    workers: z.array(processHealth),
    coordinator: processHealth,
    /** Number of samples dealt to each worker. */
    dealt: z.array(number),
    mostWaiting: number,
  }),
  /** The server's own metrics over the run; null where it has none. */
  server: z
    .object({
      scrapes: number,
      /** First and last value, extremes and mean of each series. */
      metrics: z.record(
        z.string(),
        z.object({ first: number, last: number, min: number, max: number, mean: number }),
      ),
      stats: z.record(z.string(), z.unknown()).nullable(),
    })
    .nullable(),
});

export const benchReport = z.object({
  schema: z.literal(REPORT_SCHEMA),
  skein: z.string(),
  startedAt: z.string(),
  /** False where a run was cut off or the benchmark did not reach its last run. */
  complete: z.boolean(),
  target: z.object({ url: z.string(), backend: z.string(), model: z.string(), streamed: z.boolean() }),
  machine: z.object({
    cpu: z.string(),
    cores: number,
    memoryGiB: number,
    features: z.array(z.string()),
    node: z.string(),
    os: z.string(),
  }),
  /** All options, without keys. */
  options: z.record(z.string(), z.unknown()),
  data: z.record(z.string(), z.unknown()),
  placement: z.object({
    isOn: z.boolean(),
    message: z.string(),
    coordinator: z.string().nullable(),
    workers: z.array(z.string().nullable()),
  }),
  /** Requests of the warm-up, which belong to no run. */
  warmup: z.object({ requests: number, completed: number }),
  runs: z.array(run),
  sweep: z
    .object({
      over: z.enum(['rate', 'concurrency']),
      /** Load from which on more load gains little; null where the sweep does not show it. */
      knee: z.object({ load: number, requestsPerSecond: number, outputTokensPerSecond: number }).nullable(),
      /** Greatest load that the server kept up with; null where there was none. */
      sustained: orNull,
      isSaturated: z.boolean(),
    })
    .nullable(),
});

export type BenchReport = z.infer<typeof benchReport>;
export type RunReport = BenchReport['runs'][number];
