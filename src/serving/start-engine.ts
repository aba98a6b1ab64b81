import { onlyTold, warn } from '../../base/error-reporter.js';
import { CallbackError, tellGuarded } from '../../base/guarded-calls.js';
import { onAbort } from '../../base/on-abort.js';
import type { ManagerState } from '../../callbacks/gpt-manager-options.js';
import type { MissingRanks } from '../../callbacks/ranks-options.js';
import type { Engine } from '../../engine/building/engine.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import { WorkerStuckError } from '../../host/worker-supervisor.js';
import { nameOf } from '../hub/repository.js';
import { type ModelRanks, ModelState } from './model-state.js';
import type { EngineFacts, RunningModel } from './running-model.js';

/** A worker's report of its executor. */
type Computing = Pick<
  EngineFacts,
  'fingerprint' | 'executor' | 'executorFallback' | 'instructionSet' | 'threads'
>;

/** Host of an engine in a worker. */
interface EngineHost<Loaded> {
  readonly ready: Promise<Loaded>;
  /** Properties of the engine as it runs, or ran last; null: it is not loaded yet. */
  readonly info: Loaded | null;
  readonly failure: Error | null;
  /** Requests of an engine that was lost, which continue in the next one; absent: none do. */
  readonly lost?: number;
  /**
   * Id of the engine's process, with ModelOptions.isolate; null: there is none at present, or the engine is a thread of
   * this one.
   */
  readonly pid: number | null;
  close(options?: CloseOptions): Promise<void>;
}

/** Listeners that the host calls. */
export interface HostListeners<Step> {
  onStep: (step: Step) => void;
  onStateChange: (state: ManagerState, failure: Error | null) => void;
  onError: (error: Error) => void;
  onMissing: (missing: MissingRanks) => void;
}

/** Options of a model that its start knows. */
interface EngineStartOptions {
  /** Signal whose abort ends the start. */
  signal?: AbortSignal | undefined;
  onMissingRanks?: ((missing: MissingRanks) => void) | undefined;
  tensorParallelSize?: number | undefined;
  pipelineParallelSize?: number | undefined;
  ranksAddress?: string | undefined;
}

interface EngineStart<Host, Codec, Step> {
  startHost: (listeners: HostListeners<Step>) => Host;
  openCodec: () => Promise<Codec>;
  /** Of the model's options. */
  options: EngineStartOptions;
}

/** A running engine, with the members that all models share. */
interface StartedEngine<Host, Loaded, Codec, Step> {
  host: Host;
  /** Report of the first worker. */
  loaded: Loaded;
  codec: Codec;
  events: EngineEvents<Step>;
  running: Pick<RunningModel, 'state' | 'onError' | 'isStuck' | 'close'>;
}

/**
 * Starts an engine's worker and opens its tokenizer meanwhile; if one of them fails, the other is closed.
 * @throws what the host's `ready` rejects with, or openCodec; the reason of the signal.
 */
export async function startEngine<
  Loaded extends Computing,
  Host extends EngineHost<Loaded>,
  Codec extends { close(): unknown },
  Step,
>({
  startHost,
  openCodec,
  options,
}: EngineStart<Host & EngineHost<Loaded>, Codec, Step>): Promise<StartedEngine<Host, Loaded, Codec, Step>> {
  const { signal, onMissingRanks } = options;
  signal?.throwIfAborted();
  const events = new EngineEvents<Step>();
  const state = new ModelState();
  state.ranks = ranksOf(options);
  const tellMissing = onMissingRanks && onlyTold('onMissingRanks', onMissingRanks);
  const host = startHost({
    onStep: (step) => events.emitStats(step),
    onStateChange: (engine, failure) => note(state, engine, failure, host),
    onError: (error) => events.emitError(error),
    onMissing: (missing) => {
      state.noteMissing(missing);
      tellMissing?.(missing);
    },
  });
  state.pid = () => host.pid;
  const opening = openCodec();
  const close = async (options: CloseOptions = {}) => {
    await host.close(options);
    await opening.then(
      (codec) => codec.close(),
      () => {},
    );
  };
  // A group of ranks may wait for long before there is anything to end.
  const starting = untilAborted(Promise.all([opening, host.ready]), signal);
  const [codec, loaded] = await starting.catch(async (error: unknown) => {
    // A load takes minutes where weights are packed, and its end is no longer awaited.
    await close({ abort: true, ...(signal?.aborted ? { terminateAfterMs: LAST_MOMENT_MS } : {}) });
    throw error;
  });
  const isStuck = () => host.failure instanceof WorkerStuckError;
  return {
    host,
    loaded,
    codec,
    events,
    running: { state, onError: (listener) => events.onError(listener), isStuck, close },
  };
}

/** Milliseconds in which a load that is given up may come to its end. */
const LAST_MOMENT_MS = 1000;

/** The result of work, unless the signal is aborted before: then its reason is thrown. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let release = () => {};
  const aborted = new Promise<never>((_, reject) => {
    release = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    release();
  }
}

function ranksOf({
  tensorParallelSize = 1,
  pipelineParallelSize = 1,
  ranksAddress,
}: EngineStartOptions): ModelRanks | null {
  const size = tensorParallelSize * pipelineParallelSize;
  return size === 1 ? null : { size, address: ranksAddress ?? null };
}

/** Follows the state from the first worker on: an engine may die while its tokenizer is still being read. */
function note(
  state: ModelState,
  engine: ManagerState,
  failure: Error | null,
  { info: computing, lost = 0 }: Pick<EngineHost<Computing>, 'info' | 'lost'>,
): void {
  if (computing !== null) {
    state.executor = { name: computing.executor, fallback: computing.executorFallback };
  }
  if (engine === 'running' && state.status !== 'ready') state.recover(lost);
  if (engine === 'restarting' && failure !== null) state.restart(failure);
  if (engine === 'failed' && failure !== null) state.fail(failure);
}

/** @param model the model's name among the options. */
export function engineFacts(model: string, engine: Engine, computing: Computing): EngineFacts {
  const { fingerprint, executor, executorFallback, instructionSet, threads } = computing;
  return {
    name: nameOf(model),
    fingerprint,
    enginePath: engine.directory,
    executor,
    executorFallback,
    instructionSet,
    threads,
    weights: precisionsOf(engine),
  };
}

/** Text of the precisions, such as 'bf16', or 'int4, output int8'. */
function precisionsOf({ manifest: { precision, outputPrecision } }: Engine): string {
  return precision === outputPrecision ? precision : `${precision}, output ${outputPrecision}`;
}

/** Most errors that are kept for the first listener. */
const MAX_EARLY_ERRORS = 16;

/**
 * Passes on an engine's events. An error of a listener goes to the listeners of errors. What fails while the engine is loaded, when
 * there can be none yet, is kept for the first one.
 */
export class EngineEvents<Step> {
  readonly #statsListeners = new Set<(step: Step) => void>();
  readonly #errorListeners = new Set<(error: Error) => void>();
  readonly #early: Error[] = [];

  emitStats(step: Step): void {
    for (const listener of this.#statsListeners) {
      tellGuarded(
        { callback: 'onStats' },
        () => listener(step),
        (error) => this.emitError(error),
      );
    }
  }

  emitError(error: Error): void {
    // Requests in flight show that an engine died; a failed callback would go unnoticed.
    if (this.#errorListeners.size === 0) {
      if (error instanceof CallbackError) warn(error.message);
      else if (this.#early.length < MAX_EARLY_ERRORS) this.#early.push(error);
    }
    for (const listener of this.#errorListeners) onlyTold('onError', listener)(error);
  }

  onStats(listener: (step: Step) => void): () => void {
    this.#statsListeners.add(listener);
    return () => this.#statsListeners.delete(listener);
  }

  onError(listener: (error: Error) => void): void {
    this.#errorListeners.add(listener);
    for (const error of this.#early.splice(0)) onlyTold('onError', listener)(error);
  }
}
