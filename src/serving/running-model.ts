import type { FormationListener } from '../../callbacks/formation.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { EngineShare, ModelRouting } from '../../cluster/routing/model-routing.js';
import type { EncoderBatch } from '../../host/encoder-host.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import type { EncoderModel } from '../encoding/encoder-model.js';
import type { SamplingDefaults } from '../generation/sampling-defaults.js';
import type { TextModel } from '../generation/text-model.js';
import type { AdapterSet } from './adapters/model-adapters.js';
import type { KvEventsInfo } from './kv-events/kv-events.js';
import type { ModelFacts } from './model-facts.js';
import type { ModelState } from './model-state.js';
import type { PictureCounts } from './pictures/model-sight.js';
import type { OpenSight } from './pictures/open-sight.js';

/** Properties of a loaded model of any kind, and of what computes for it. */
export interface EngineFacts {
  /** Name of the model's folder or file. */
  name: string;
  /**
   * Hash of all that decides the bits of answers: the content of weights and tokenizer, their precision, that of the KV
   * cache, the executor, its instruction set and the version of skein. The same on every machine.
   */
  fingerprint: string;
  enginePath: string;
  executor: string;
  /** Why the executor is not the fastest one, and how to get that; null: it is the fastest, or was asked for. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  weights: string;
}

/** Properties of a model that generates text. */
export interface ModelInfo extends EngineFacts {
  kvDtype: string;
  /** Bound on the milliseconds of an iteration for chunks of long prompts; null: no bound. */
  maxChunkMs: number | null;
  /** Number of tokens that the KV cache holds over all requests. */
  kvTokens: number;
  /** Bytes of the KV cache when it is full, that of a draft model included. */
  kvCacheBytes: number;
  /** Number of tokens of one block of the KV cache. */
  tokensPerBlock: number;
  /** Number of blocks of the secondary pool: see KvCacheConfig.hostCacheSize. */
  secondaryBlocks: number;
  maxInputLen: number;
  maxSeqLen: number;
  /** A sentence where the KV cache was given fewer tokens than the model's context has, so that maxSeqLen is less; else null. */
  loweredContext: string | null;
  /** A sentence with the speed to be expected, where experts are read from the disk; else null. */
  expertReading: string | null;
  /** Settings of requests that have none of their own, as the model's makers recommend them; empty with generationConfig 'none'. */
  sampling: SamplingDefaults;
  /** A sentence for each recommendation that is left out, since no request could have it. */
  samplingLeftOut: readonly string[];
  /**
   * A sentence for each thing that is computed differently from what the model's files say: see
   * Checkpoint.remarks.
   */
  remarks: readonly string[];
}

/** Properties of an encoder. */
export interface EncoderInfoOfModel extends EngineFacts {
  /** Output of the model: embeddings of texts, scores of pairs, or scores of labels. */
  task: 'embedding' | 'score' | 'classification';
  /** Number of values of an embedding, or of labels; 1 for scores. */
  dimensions: number;
  /** Names of the labels of a classifier; absent: it is none. */
  labels?: readonly string[];
  /** Longest input in tokens, special tokens included. */
  maxSeqLen: number;
}

/** Numbers of requests in the engine (running) and in the queue before it (waiting). */
export interface RequestCounts {
  running: number;
  waiting: number;
}

/** Numbers of requests, and of blocks of the KV cache. */
export interface EngineCounts extends RequestCounts {
  maxBlocks: number;
  usedBlocks: number;
}

/** Numbers of a model's workers. */
export interface WorkerCounts {
  /** They take requests. */
  ready: number;
  /** They load the model, or what it is made of. */
  loading: number;
  /** How far the foremost of these is with what it does now; null: none says. */
  fraction: number | null;
  /**
   * Loads that have ended well, as far as the gateway knows, and the milliseconds that they took together.
   */
  loads: number;
  loadMs: number;
}

/** Numbers of an engine. `Step` is what the engine reports of each step: of an iteration, or of a batch. */
export interface ModelStatistics<Counts extends RequestCounts, Step> {
  /** The present numbers. */
  counts(): Counts;
  /** Requests that had run and are paused; absent where none can be. */
  paused?(): number;
  /**
   * Outcome of requests sent to the workers that have them cached; absent, or null: there is no such routing.
   */
  routing?(): ModelRouting | null;
  /** Prefill workers whose blocks no answering worker can use; absent: there are no such workers. */
  unusedPrefillers?(): number;
  /** Requests that engines elsewhere were given, by their fingerprints; absent: its engine is here. */
  shares?(): ReadonlyMap<string, EngineShare>;
  /** What became of pictures, and of their files; absent: it sees none here. */
  pictures?(): Partial<PictureCounts>;
  /** Workers elsewhere that answer for the model at present; absent: it runs here. */
  workers?(): WorkerCounts;
  /** Calls the listener after each step, until the function that it returns is called. */
  onStats(listener: (step: Step) => void): () => void;
}

export type GeneratorStatistics = ModelStatistics<EngineCounts, IterationStats>;
export type EncoderStatistics = ModelStatistics<RequestCounts, EncoderBatch>;

/** Members of every running model, whatever it does. */
interface Running<Kind, Info extends EngineFacts, Model, Statistics> {
  readonly kind: Kind;
  /** Properties of the engine as it runs now: an engine that was restarted may use another executor. */
  readonly info: Info;
  readonly state: ModelState;
  readonly statistics: Statistics;
  /** Interface by which texts get in and out of the model. */
  readonly model: Model;
  /** Calls the listener with each failure that belongs to no request. */
  onError(listener: (error: Error) => void): void;
  /** True where the engine's thread is in a native call that does not return: the process can then only be killed. */
  isStuck(): boolean;
  /** Lets active requests end, then frees the engine. */
  close(options?: CloseOptions): Promise<void>;
}

interface RunningGenerator extends Running<'generator', ModelInfo, TextModel, GeneratorStatistics> {
  /** The batch manager's statistics of the latest iteration, as JSON; with nothing in flight all counts are 0. */
  statsJson(): string;
  /** Calls the listener with the requests in flight: see InProcessHost.watchFormation. */
  watchFormation(listener: FormationListener): () => void;
  /** Forgets every block of the KV cache that later requests could find; resolves with their number. */
  resetCache(): Promise<number>;
  /** What its files say; absent: its engine directory is asked. */
  facts?(): ModelFacts;
  /** See ServedGenerator; absent: the one engine of `info` answers. */
  engines?: (adapter?: string) => ReadonlyMap<string, number>;
  /** What it sees with; absent: it takes no pictures, or they are seen elsewhere. */
  readonly seesWith?: Pick<OpenSight, 'sight' | 'facts'>;
  /** LoRA adapters by which the model answers too; null: it was loaded without the option for them. */
  readonly adapters: AdapterSet | null;
  /** Where events of its cache are published; null: nowhere. */
  readonly kvEvents: KvEventsInfo | null;
}

interface Kinds {
  generator: RunningGenerator;
  encoder: Running<'encoder', EncoderInfoOfModel, EncoderModel, EncoderStatistics>;
}

export type ModelKind = keyof Kinds;

/** A running model, of one kind or of any. */
export type RunningModel<Kind extends ModelKind = ModelKind> = Kinds[Kind];
