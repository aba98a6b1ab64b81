import type { BackendOptions } from '../backends/backend.js';
import type { Sample } from '../samples.js';

/** Checks of an https server's certificate, in the form of node:tls. */
export interface TlsOptions {
  /** Authorities as PEM text. */
  ca?: string;
  rejectUnauthorized?: boolean;
}

/** Configuration of a worker, sent once when it starts. */
export interface WorkerConfig {
  /** Number of the worker, from 0. */
  worker: number;
  /** Scheme, host and port of the server. */
  origin: string;
  backend: BackendOptions;
  headers: Readonly<Record<string, string>>;
  tls: TlsOptions;
  /** Number of connections opened before the first request. */
  connections: number;
  /** Most requests of this worker in flight; further ones wait in it, which is reported. */
  maxInFlight: number;
  /** False for a new connection for each request. */
  keepAlive: boolean;
  timeoutMs: number;
  stallMs: number;
  /** Most repetitions after a 429, each after the time in Retry-After. */
  retries: number;
  /** Polls the clock before each request instead of trusting timers. */
  busyWait: boolean;
}

/** Begins a run or a part of it (warm-up, a point of a sweep). */
export interface BeginFrame {
  type: 'begin';
  /** Zero of the time bins. */
  startMs: number;
  /** Most requests (or conversations) of a closed loop at once in this worker; null where the schedule has times. */
  concurrency: number | null;
}

/** Requests to send, several in a frame. */
export interface IssueFrame {
  type: 'issue';
  /** Number of the first request of each sample (a conversation has one for each turn). */
  requests: number[];
  sampleNumbers: number[];
  /** The samples; null for one that this worker was sent before and kept, as `keepSamples` asked. */
  samples: (Sample | null)[];
  keepSamples: boolean;
  /** Times to send them, on the monotonic clock; empty in a closed loop. */
  atMs: number[];
}

/**
 * Stops new requests: waiting ones become not_sent or, with `withdraw`, count as never part of the run; with `cancel`
 * those in progress are cancelled.
 */
export interface StopFrame {
  type: 'stop';
  withdraw: boolean;
  cancel: boolean;
}

/** Asks for all gathered results, since the run is over. */
export interface FlushFrame {
  type: 'flush';
}

export interface ExitFrame {
  type: 'exit';
}

export type ToWorker = BeginFrame | IssueFrame | StopFrame | FlushFrame | ExitFrame;

/** Reports that the connections are open and the worker is ready for the first request. */
export interface ReadyFrame {
  type: 'ready';
  /** Number of open connections; smaller than asked for where the server refused some. */
  connections: number;
}

export interface ResultFrame {
  type: 'results';
  /** Records of finished requests; see RecordList. */
  records: Float64Array;
  /** Requests whose stream has begun, each with the milliseconds from sending to its first piece: sent at once. */
  firsts: Float64Array;
  /** Time bins (of BIN_MS since startMs), each with its number of pieces with text. */
  bins: Float64Array;
  /** Histogram of the times between pieces since the last frame that had one, in microseconds. */
  gaps: string | null;
  /** Messages of the first few failures of each outcome. */
  messages: { request: number; message: string }[];
  inFlight: number;
  /** Number of requests whose time has come, but that have no slot. */
  waiting: number;
}

export interface StoppedFrame {
  type: 'stopped';
  /** Number of dealt requests that were not begun and are not part of the run. */
  withdrawn: number;
}

/** Reports that all results have been sent. */
export interface FlushedFrame {
  type: 'flushed';
}

/** Health of the process, every second. */
export interface HealthFrame {
  type: 'health';
  health: ClientHealth;
}

/** Health since the last frame. */
export interface ClientHealth {
  /** Share of the time in which the event loop was not idle, 0 to 1. */
  eventLoopUtilization: number;
  /** Lateness of the event loop beyond its timer's resolution. */
  loopDelayP99Ms: number;
  loopDelayMaxMs: number;
  gcMs: number;
  /** Processor time of the process over wall time; above 1 with helper threads. */
  cpu: number;
  /** Number of connections opened since the first request. */
  opened: number;
  seconds: number;
}

export type FromWorker = ReadyFrame | ResultFrame | StoppedFrame | FlushedFrame | HealthFrame;

/** Width of a time bin in milliseconds. */
export const BIN_MS = 250;
