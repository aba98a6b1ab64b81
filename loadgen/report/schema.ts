import * as z from 'zod';
import { LATENCIES } from '../metrics/run-metrics.js';
import { OUTCOMES } from '../outcomes.js';

/** Name and version of the format: a reader refuses others. It grows only by fields. */
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
  /** Names its point of a sweep, and which repetition it is. */
  label: z.string(),
  /** The rate or the concurrency that it was run at; null where there is no such number. */
  load: orNull,
  repetition: number,
  arrivals: z.record(z.string(), z.unknown()),
  seed: number,
  /** false: it was cut off, for this reason; what there is of it is here. */
  complete: z.boolean(),
  cutOff: z.string().nullable(),
  /** Time from the start of the schedule to the last answer. */
  seconds: number,
  requests: z.object({
    /** Every request is counted under exactly one outcome. */
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
    /** The first few of what went wrong, in words. */
    messages: z.array(z.object({ request: number, outcome: z.string(), message: z.string() })),
  }),
  throughput: z.object({
    /** Requests a second: as scheduled (null for closed loops), as sent, as answered. */
    offered: orNull,
    issued: number,
    requests: number,
    outputTokens: number,
    totalTokens: number,
    /** Pieces a second while requests were issued, without the tail in which the last answers end. */
    steadyPieces: number,
  }),
  tokens: z.object({
    prompt: number,
    completion: number,
    /** Prompt tokens that were found in the server's prefix cache, as far as it tells. */
    cached: number,
    pieces: number,
    /** Answers whose tokens the server did not count: each piece counts as one. */
    withoutUsage: number,
    /** Prompts whose length was asked for, and how far the server's count is from it. */
    verified: z.object({ requests: number, exact: number, meanError: orNull, maxError: orNull }),
    /** Answers that were asked to have a length, and have it. */
    fullLength: z.object({ requests: number, exact: number }),
  }),
  /** Milliseconds. */
  latencies: z.object(
    Object.fromEntries(LATENCIES.map((name) => [name, latency])) as Record<
      (typeof LATENCIES)[number],
      typeof latency
    >,
  ),
  /** The curve of each latency: [share, milliseconds], from 0 to 1. */
  curves: z.record(z.string(), z.array(z.tuple([number, number]))),
  goodput: z
    .object({
      slo: z.object({ ttftMs: number.optional(), tpotMs: number.optional(), e2eMs: number.optional() }),
      good: number,
      /** Share of all requests, failed ones too. */
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
    /** The client, not the server, may have made these figures. */
    isBottleneck: z.boolean(),
    findings: z.array(z.object({ code: z.string(), isBottleneck: z.boolean(), message: z.string() })),
    workers: z.array(processHealth),
    coordinator: processHealth,
    /** Samples dealt to each worker. */
    dealt: z.array(number),
    mostWaiting: number,
  }),
  /** The server's own metrics over the run, where it has them. */
  server: z
    .object({
      scrapes: number,
      /** First and last value, extremes and mean of each series that was read. */
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
  /** false: a run was cut off or the benchmark did not come to its last run. */
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
  /** Requests of the warm-up, which are in no run. */
  warmup: z.object({ requests: number, completed: number }),
  runs: z.array(run),
  sweep: z
    .object({
      over: z.enum(['rate', 'concurrency']),
      /** Where more load stops to pay; null where the sweep does not show it. */
      knee: z.object({ load: number, requestsPerSecond: number, outputTokensPerSecond: number }).nullable(),
      /** The greatest load that the server kept up with; null where none. */
      sustained: orNull,
      isSaturated: z.boolean(),
    })
    .nullable(),
});

export type BenchReport = z.infer<typeof benchReport>;
export type RunReport = BenchReport['runs'][number];
