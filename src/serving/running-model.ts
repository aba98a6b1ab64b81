import type { FormationListener } from '../../callbacks/formation.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { EncoderBatch } from '../../host/encoder-host.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import type { EncoderModel } from '../encoding/encoder-model.js';
import type { TextModel } from '../generation/text-model.js';
import type { ModelState } from './model-state.js';

/** What was loaded, and what computes for it, whatever the model does. */
export interface EngineFacts {
  /** The model's folder or file name. */
  name: string;
  /** Changes with the model's files, its precision and the version of skein. */
  fingerprint: string;
  enginePath: string;
  executor: string;
  /** Why it is not the fastest one, and how to get that; null: it is, or it was asked for. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  weights: string;
}

/** Of a model that generates text. */
export interface ModelInfo extends EngineFacts {
  kvDtype: string;
  /** Milliseconds of an iteration for chunks of long prompts; null: no bound. */
  maxChunkMs: number | null;
  /** Tokens that the KV cache holds over all requests. */
  kvTokens: number;
  /** What it takes where all of it is in use, and that of a draft model, in bytes. */
  kvCacheBytes: number;
  /** Tokens of one block of it. */
  tokensPerBlock: number;
  /** Blocks of its secondary pool: see ModelOptions.hostCacheSize. */
  secondaryBlocks: number;
  maxInputLen: number;
  maxSeqLen: number;
}

/** Of an encoder. */
export interface EncoderInfoOfModel extends EngineFacts {
  /** What it makes of texts: embeddings, or scores of pairs. */
  task: 'embedding' | 'score';
  /** Values of an embedding; 1 for scores. */
  dimensions: number;
  /** Longest input in tokens, special tokens included. */
  maxSeqLen: number;
}

/** Requests in an engine and before it. */
export interface RequestCounts {
  running: number;
  waiting: number;
}

/** The same with the blocks of the KV cache. */
export interface EngineCounts extends RequestCounts {
  maxBlocks: number;
  usedBlocks: number;
}

/** What an engine counts. `Step` is what it tells of each of its steps: of an iteration, of a batch. */
export interface ModelStatistics<Counts extends RequestCounts, Step> {
  /** Right now. */
  counts(): Counts;
  /** Calls the listener after each step, until the function that it returns is called. */
  onStats(listener: (step: Step) => void): () => void;
}

export type GeneratorStatistics = ModelStatistics<EngineCounts, IterationStats>;
export type EncoderStatistics = ModelStatistics<RequestCounts, EncoderBatch>;

/** What every model that runs has, whatever it does. */
interface Running<Kind, Info extends EngineFacts, Model, Statistics> {
  readonly kind: Kind;
  /** Of the engine as it runs now: one that was started again may compute with another executor. */
  readonly info: Info;
  readonly state: ModelState;
  readonly statistics: Statistics;
  /** How texts get in and out of it. */
  readonly model: Model;
  /** Calls the listener with failures that belong to no request. */
  onError(listener: (error: Error) => void): void;
  /** The engine's thread is in a native call that does not return: the process cannot end but by being killed. */
  isStuck(): boolean;
  /** Lets what is active end, then frees the engine. */
  close(options?: CloseOptions): Promise<void>;
}

interface RunningGenerator extends Running<'generator', ModelInfo, TextModel, GeneratorStatistics> {
  /** The batch manager's statistics of the latest iteration, as JSON; with nothing in flight all counts are 0. */
  statsJson(): string;
  /** See InProcessHost.watchFormation. */
  watchFormation(listener: FormationListener): () => void;
  /** Forgets every block of the KV cache that later requests could find; resolves with their number. */
  resetCache(): Promise<number>;
}

interface Kinds {
  generator: RunningGenerator;
  encoder: Running<'encoder', EncoderInfoOfModel, EncoderModel, EncoderStatistics>;
}

export type ModelKind = keyof Kinds;

/** A model that runs, of one kind or of any. */
export type RunningModel<Kind extends ModelKind = ModelKind> = Kinds[Kind];
