import type { FailureReason, InferModel } from '../../serving/infer-model.js';
import type { VersionState } from '../../serving/model-repository.js';

/** Number of batches whose row count lies between the first number and the second. */
export type SizeCount = readonly [from: number, to: number, batches: number];

/** What a version that answers has done since it was loaded, and what it does now. */
export interface ModelWork {
  kind: InferModel['kind'];
  backend: string;
  /** Instances by what they do. */
  instances: { busy: number; idle: number; starting: number; dead: number };
  /** Workers started after the first one of each instance. */
  restarts: number;
  waiting: number;
  running: number;
  answered: number;
  failures: Readonly<Record<FailureReason, number>>;
  /** Batches that were run; of a model that generates text, its iterations. */
  batches: number;
  /** Rows of all batches together. */
  rows: number;
  sizes: readonly SizeCount[];
  /** Sequences for which an instance has a place, and those that wait for one; null: the model has none. */
  sequences: { live: number; backlog: number } | null;
  /** Its LoRA adapters: their number, the names of the first of them, and how often one came or went; null: it takes none. */
  adapters: { count: number; names: readonly string[]; changes: number } | null;
  /** Mean milliseconds of a request before its batch; null: not measured. */
  queueMs: number | null;
  /** Mean milliseconds of a batch; null: not measured. */
  computeMs: number | null;
}

/** A version of a model, or a model of which no version was ever loaded. */
export interface ModelRow {
  name: string;
  /** Null: none was ever loaded. */
  version: string | null;
  /** Null: it was never loaded. */
  state: VersionState | null;
  /** Why it is not ready; '': nothing to say. */
  reason: string;
  /** Null: it does not answer. */
  work: ModelWork | null;
}

/** The event `models` of GET /stats/models/stream: every version of every model of the repository, or the foremost of very many. */
export interface ModelsEvent {
  v: 1;
  /** Milliseconds since 1970. */
  timeMs: number;
  /** Number of versions, those that `rows` leaves out included. */
  models: number;
  /** Number of versions of each state; UNKNOWN: never loaded. */
  states: Partial<Record<VersionState, number>>;
  /** Requests of all models. */
  waiting: number;
  running: number;
  rows: readonly ModelRow[];
}
