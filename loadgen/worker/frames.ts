import type { BackendOptions } from '../backends/backend.js';
import type { Sample } from '../samples.js';

/** How the certificate of an https server is checked, as node:tls takes it. */
export interface TlsOptions {
  /** PEM text. */
  ca?: string;
  rejectUnauthorized?: boolean;
}

/** What a worker is told once, when it starts. */
export interface WorkerConfig {
  /** Number of the worker, from 0. */
  worker: number;
  /** Scheme, host and port. */
  origin: string;
  backend: BackendOptions;
  headers: Readonly<Record<string, string>>;
  tls: TlsOptions;
  /** Connections that are open before the first request. */
  connections: number;
  /** Most requests of this worker in flight; more wait in it, which is reported. */
  maxInFlight: number;
  /** false: a new connection for each request. */
  keepAlive: boolean;
  timeoutMs: number;
  stallMs: number;
  /** Repetitions after a 429, each after what Retry-After says. */
  retries: number;
  /** Poll the clock before each issue instead of trusting timers. */
  busyWait: boolean;
}

/** The beginning of a run or of a part of it (warm-up, a point of a sweep). */
export interface BeginFrame {
  type: 'begin';
  /** Zero of the time bins. */
  startMs: number;
  /** Requests (or conversations) of a closed loop at once in this worker; null where the schedule has times. */
  concurrency: number | null;
}

/** Requests to issue, several in a frame. */
export interface IssueFrame {
  type: 'issue';
  /** Number of the first request of each sample (a conversation has one for each turn). */
  requests: number[];
  sampleNumbers: number[];
  /** null for a sample that this worker has had, where `keepSamples` said to keep them. */
  samples: (Sample | null)[];
  keepSamples: boolean;
  /** Monotonic clock; empty in a closed loop. */
  atMs: number[];
}

/** No new requests: what waits is not_sent (or, `withdraw`, was never part of the run), and with `cancel` what is under way is cancelled. */
export interface StopFrame {
  type: 'stop';
  withdraw: boolean;
  cancel: boolean;
}

/** Everything is over: send what has been gathered. */
export interface FlushFrame {
  type: 'flush';
}

export interface ExitFrame {
  type: 'exit';
}

export type ToWorker = BeginFrame | IssueFrame | StopFrame | FlushFrame | ExitFrame;

/** Connections are open, the first request will find everything loaded. */
export interface ReadyFrame {
  type: 'ready';
  /** Connections that are open; fewer than asked for where the server did not take them. */
  connections: number;
}

export interface ResultFrame {
  type: 'results';
  /** Records of requests that are over; see RecordList. */
  records: Float64Array;
  /** Request, and milliseconds from sent to first piece, of streams that have begun: sent at once. */
  firsts: Float64Array;
  /** Bin (of BIN_MS since startMs) and pieces with text in it. */
  bins: Float64Array;
  /** Histogram of the times between pieces since the last frame that had one, in microseconds. */
  gaps: string | null;
  /** What went wrong, in words, for the first few of each outcome. */
  messages: { request: number; message: string }[];
  inFlight: number;
  /** Whose time has come, but for which there is no slot. */
  waiting: number;
}

export interface StoppedFrame {
  type: 'stopped';
  /** Requests of issue frames that were not begun and are not part of the run. */
  withdrawn: number;
}

/** All results have been sent. */
export interface FlushedFrame {
  type: 'flushed';
}

/** How the process is doing, every second. */
export interface HealthFrame {
  type: 'health';
  health: ClientHealth;
}

/** Since the last frame. */
export interface ClientHealth {
  /** Share of the time in which the event loop was not idle, 0 to 1. */
  eventLoopUtilization: number;
  /** Lateness of the event loop beyond its timer's resolution. */
  loopDelayP99Ms: number;
  loopDelayMaxMs: number;
  gcMs: number;
  /** Processor time of the process over wall time; above 1 with helper threads. */
  cpu: number;
  /** Connections opened since the first request. */
  opened: number;
  seconds: number;
}

export type FromWorker = ReadyFrame | ResultFrame | StoppedFrame | FlushedFrame | HealthFrame;

/** Width of a time bin in milliseconds. */
export const BIN_MS = 250;
