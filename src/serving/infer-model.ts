import type { InferListener, InferRequest } from '../../callbacks/infer/infer-types.js';
import type { InstanceState } from '../../host/batch/batch-instance.js';
import type { ModelConfig } from '../../models/repository/model-config.js';

/** A count of durations and their sum, as the protocol's statistics have them. */
export interface StatisticDuration {
  count: number;
  ns: number;
}

/** Durations of the requests of a model. Source: the statistics extension of the protocol. */
export interface InferStatistics {
  success: StatisticDuration;
  fail: StatisticDuration;
  queue: StatisticDuration;
  compute_input: StatisticDuration;
  compute_infer: StatisticDuration;
  compute_output: StatisticDuration;
  cache_hit: StatisticDuration;
  cache_miss: StatisticDuration;
}

/** Durations of the executions of one batch size. */
export interface BatchStatistics {
  batch_size: number;
  compute_input: StatisticDuration;
  compute_infer: StatisticDuration;
  compute_output: StatisticDuration;
}

/** What is counted of a version of a model since it was loaded: GET /v2/models/M/stats and the metrics read the same numbers. */
export interface VersionStatistics {
  /** Milliseconds since 1970 of the latest request; 0: none yet. */
  last_inference: number;
  /** Rows of all successful requests: a request of batch size 4 counts 4. */
  inference_count: number;
  execution_count: number;
  inference_stats: InferStatistics;
  batch_stats: BatchStatistics[];
}

/** Times counted by bounds that they do not pass, as a histogram has them. */
export interface TimeCounts {
  /** Upper bounds in milliseconds, growing. */
  bounds: readonly number[];
  /** Times up to each bound and above the one before it, and then those above all. */
  counts: readonly number[];
  sumMs: number;
}

/** Reasons of failed requests, as nv_inference_request_failure has them. */
export type FailureReason = 'REJECTED' | 'CANCELED' | 'BACKEND' | 'OTHER';

/** LoRA adapters of a model of texts. */
export interface AdapterActivity {
  names: readonly string[];
  /** Number of times that one came or went. */
  changes: number;
}

/** What a version does now. */
export interface ModelActivity {
  /** Requests of which nothing has begun yet. */
  waiting: number;
  /** Requests of which a part is with an instance, or done. */
  running: number;
  /** What each of its instances does; the engine of a model of texts is one. */
  instances: readonly InstanceState[];
  /** Workers started after the first one of each instance. */
  restarts: number;
  /** Milliseconds since 1970 of the latest request that ended; 0: none yet. */
  lastInference: number;
  /** Its sequences: those that an instance has a place for, and those that wait for one; absent: it has none. */
  sequences?: { live: number; backlog: number };
  /** Its LoRA adapters; absent: it takes none. */
  adapters?: AdapterActivity;
}

/** A version of a model that answers requests for tensors, whatever it is: a batched model, a text model, an encoder. */
export interface InferModel {
  /** What it takes besides tensors. */
  readonly kind: 'tensors' | 'generator' | 'encoder';
  readonly config: ModelConfig;
  readonly version: string;
  /** Labels of the values of its output; absent: those of the files that its configuration names, if it names any. */
  readonly labels?: readonly string[] | undefined;
  /** The model's folder, in which its labels are; null: it has none. */
  readonly modelDirectory: string | null;
  /** True where the parameters of its requests are never read; absent: they may be. */
  readonly ignoresParameters?: boolean;
  statistics(): VersionStatistics;
  activity(): ModelActivity;
  failures(): Readonly<Record<FailureReason, number>>;
  /** A request whose terms.stop is aborted ends with what there is of its answer; absent: it knows nothing of that. */
  readonly endsWhenStopped?: true;
  /** True where it has a response cache. */
  readonly isCached?: boolean;
  /** From a request's arrival to its first response; absent: each request has one response at most. */
  readonly firstResponses?: () => TimeCounts;
  /**
   * Answers a request through `on`, later. @throws InferError at once where the request does not fit the model's configuration.
   */
  infer(request: InferRequest, on: InferListener): void;
}

/**
 * The sequences of a version: each continues where its state is, also once another version has replaced this
 * one.
 */
export interface SequencePlace {
  /** The request's sequence is under way here. */
  holds(request: InferRequest): boolean;
  infer(request: InferRequest, on: InferListener): void;
  /** From now on requests of sequences that are under way in `before` go there. */
  goOnFrom(before: SequencePlace): void;
  /** Resolves when no sequence is under way here, or the version is closed. */
  whenOver(): Promise<void>;
}
