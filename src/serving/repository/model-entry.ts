import { messageOf } from '../../../base/error-text.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { byNumber } from '../../../models/repository/versions.js';
import type { InferModel } from '../infer-model.js';
import type { IndexRow, VersionState } from '../model-repository.js';
import type { AskedLoad, LoadPlan, ModelSource, ServedVersion } from './model-source.js';

/** Called when a version can be found, and when it no longer can. */
export interface EntryListener {
  /**
   * Asked before a model is loaded, with null, and before each of its versions can be found. Absent: every name is free.
   * @throws an Error, its message without a full stop, where another model has its name, or one of the version's
   */
  checkNames?(name: string, version: ServedVersion | null): void;
  added(version: ServedVersion): void;
  removed(version: ServedVersion): void;
}

interface Row {
  state: VersionState;
  reason: string;
}

/**
 * A name of the repository through its life. The command queue ensures that its changes are called one after
 * the other.
 *
 *   unloaded --load--> LOADING --started--> READY --unload--> UNLOADING --last answer--> UNAVAILABLE
 *                         '--failed--> UNAVAILABLE, with the reason; where one runs: it stays READY
 */
export class ModelEntry {
  readonly name: string;
  /** Null: the model's folder is gone. */
  source: ModelSource | null;
  /** It comes and goes with a folder of a repository. */
  readonly isOfFolder: boolean;
  readonly #listener: EntryListener;
  readonly #rows = new Map<string, Row>();
  /** Versions that answer, lowest first. */
  #live: readonly ServedVersion[] = [];
  /** Versions that no request finds any more, and that still answer. */
  readonly #leaving = new Set<ServedVersion>();
  /** Those of them whose sequences continue, oldest first. */
  #retiring: ServedVersion[] = [];
  #identity: string | null = null;
  /** As it was asked to be loaded last; null: it was not. */
  #asked: AskedLoad | null = null;
  #isLoading = false;
  /** Why the latest load failed; null: it did not, or there was none. */
  #problem: string | null = null;

  constructor(
    name: string,
    { source, isOfFolder }: Pick<ModelEntry, 'source' | 'isOfFolder'>,
    listener: EntryListener,
  ) {
    this.name = name;
    this.source = source;
    this.isOfFolder = isOfFolder;
    this.#listener = listener;
  }

  get models(): readonly InferModel[] {
    return this.#live.map(({ model }) => model);
  }

  /** Rows of the index: one for each version that is or was loaded; else what is known of the model. */
  get index(): readonly IndexRow[] {
    const { name } = this;
    if (this.#rows.size === 0) {
      return [this.#problem === null ? { name } : { name, state: 'UNAVAILABLE', reason: this.#problem }];
    }
    const rows = [...this.#rows].sort(([a], [b]) => byNumber(a, b));
    return rows.map(([version, { state, reason }]) => ({ name, version, state, ...(reason && { reason }) }));
  }

  /** The version, or with '' the latest. @throws InferError */
  find(version: string): InferModel {
    const served =
      version === '' ? this.#live.at(-1) : this.#live.find(({ model }) => model.version === version);
    if (served !== undefined) return served.model;
    const row = this.#rows.get(version);
    if (version !== '' && row === undefined) {
      throw new InferError(
        `Request for unknown model: '${this.name}' version ${version} is not found`,
        'notFound',
      );
    }
    if (version === '' && this.#isLoading) {
      throw new InferError(`Request for model '${this.name}', which is being loaded`, 'unavailable');
    }
    const which = version === '' ? 'has no available versions' : `version ${version} is not at ready state`;
    throw new InferError(
      `Request for unknown model: '${this.name}' ${which}`,
      version === '' ? 'notFound' : 'unavailable',
    );
  }

  /** What runs was loaded as the source says it, and nothing else: another such load changes what has changed. */
  get isRepeatable(): boolean {
    return this.#live.length === 0 || this.#identity !== null;
  }

  /** A version answers, or is about to. */
  get isNameHeld(): boolean {
    return this.#isLoading || this.#live.length > 0;
  }

  /** Takes over a version that runs already, in place of a load whose plan had this identity. */
  adopt(version: ServedVersion, identity: string): void {
    this.#replace([version], identity);
  }

  /** A version, or one that was to leave, is in a native call that does not return. */
  isStuck(): boolean {
    return [...this.#live, ...this.#leaving].some((version) => version.isStuck());
  }

  /** What it needs of other models. */
  needs(asked: Pick<AskedLoad, 'config'>): readonly string[] {
    return this.source?.needs?.(this.name, asked) ?? [];
  }

  /**
   * Loads what the source says now; where that fails, what runs stays. @param other a source to use where the
   * entry has none of its own @returns true where something else runs now @throws InferError with the reason
   */
  async load(asked: AskedLoad, other: ModelSource | null = null): Promise<boolean> {
    const source = this.source ?? other;
    this.#isLoading = true;
    this.#asked = asked;
    try {
      if (source === null) throw new Error('it is in no model repository any more');
      this.#listener.checkNames?.(this.name, null);
      const plan = await source.plan(this.name, asked);
      if (plan.identity !== null && plan.identity === this.#identity && this.#live.length > 0) {
        this.#noteProblem(null);
        return false;
      }
      const started = await this.#start(plan);
      try {
        // From here on no other model can take a name.
        for (const version of started) this.#listener.checkNames?.(this.name, version);
      } catch (error) {
        await this.#giveUp(started);
        throw error;
      }
      const isOther = started.some((version) => !this.#live.includes(version));
      this.#replace(started, plan.identity);
      return isOther;
    } catch (error) {
      this.#noteProblem(messageOf(error));
      throw this.#loadError(error);
    } finally {
      this.#isLoading = false;
    }
  }

  /** Refuses it before loading starts. @returns the error for the caller */
  refuse(error: unknown): InferError {
    this.#problem = messageOf(error);
    return this.#loadError(error);
  }

  #loadError(cause: unknown): InferError {
    return new InferError(`failed to load '${this.name}', ${this.#problem}`, 'invalid', { cause });
  }

  /**
   * Something that it needs has come, changed or gone: it is reloaded as it was loaded last. Where that is no
   * longer possible it is withdrawn, with the reason, until it is. @param onChange called as soon as other
   * requests find something else, or nothing
   */
  async follow(options: CloseOptions, onChange: () => void): Promise<void> {
    if (this.#asked === null) return;
    try {
      if (await this.load(this.#asked)) onChange();
    } catch {
      await this.unload(options, onChange, this.#problem ?? '');
    }
  }

  /**
   * Why the latest load failed, in the rows of what it was to load and of what runs in its place; null: it
   * did not.
   */
  #noteProblem(problem: string | null): void {
    this.#problem = problem;
    for (const [version, { state }] of this.#rows) {
      if (state === 'LOADING') this.#rows.set(version, { state: 'UNAVAILABLE', reason: problem ?? '' });
      if (state !== 'READY') continue;
      this.#rows.set(version, {
        state,
        reason: problem === null ? '' : `could not be loaded again: ${problem}`,
      });
    }
  }

  /**
   * No request finds the model from now on; resolves when those that have found it are answered, and the model is freed.
   * @param onWithdrawn called as soon as no request finds it @param reason why, for the index
   */
  async unload(
    options: CloseOptions,
    onWithdrawn: () => void = () => {},
    reason = 'unloaded',
  ): Promise<void> {
    const leaving = this.#live;
    this.#withdraw(leaving);
    this.#identity = null;
    const why = reason === 'unloaded' ? 'unloading' : reason;
    for (const { model } of leaving) this.#rows.set(model.version, { state: 'UNLOADING', reason: why });
    onWithdrawn();
    await Promise.all(leaving.map((version) => this.#close(version, options)));
    await Promise.all([...this.#leaving].map((version) => version.close(options)));
    for (const { model } of leaving) this.#rows.set(model.version, { state: 'UNAVAILABLE', reason });
  }

  /** Starts all versions; where one cannot be, those that did start are closed. */
  async #start({ versions, start }: LoadPlan): Promise<ServedVersion[]> {
    const isRunning = new Set(this.#live.map(({ model }) => model.version));
    for (const version of versions) {
      if (!isRunning.has(version)) this.#rows.set(version, { state: 'LOADING', reason: '' });
    }
    const running = (version: string) => this.#live.find(({ model }) => model.version === version);
    const results = await Promise.allSettled(versions.map((version) => start(version, running(version))));
    const started = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined) return started;
    await this.#giveUp(started);
    throw failed.reason;
  }

  /** Ends versions that no request has found. */
  async #giveUp(started: readonly ServedVersion[]): Promise<void> {
    const unfound = started.filter((version) => !this.#live.includes(version));
    await Promise.all(unfound.map((version) => version.close({ abort: true })));
  }

  /** From now on requests find the new versions; the old ones answer what they have, and are freed. */
  #replace(started: readonly ServedVersion[], identity: string | null): void {
    const before = this.#live;
    const old = before.filter((version) => !started.includes(version));
    this.#withdraw(old);
    for (const { model } of old) {
      this.#rows.set(model.version, { state: 'UNAVAILABLE', reason: 'unloaded' });
    }
    this.#live = started;
    this.#identity = identity;
    this.#problem = null;
    for (const version of started) {
      this.#rows.set(version.model.version, { state: 'READY', reason: '' });
      if (!before.includes(version)) this.#listener.added(version);
    }
    // Their own listeners report why closing one failed.
    for (const version of old) this.#retire(version, goesOn(version, started)).catch(() => {});
  }

  /** @param isNeeded requests of its sequences still come to it, by the version that took its place */
  async #retire(version: ServedVersion, isNeeded: boolean): Promise<void> {
    if (isNeeded) {
      this.#leaving.add(version);
      this.#retiring.push(version);
      if (this.#retiring.length > MAX_RETIRING) this.#close(this.#retiring[0]!).catch(() => {});
      await version.sequences!.whenOver();
      this.#retiring = this.#retiring.filter((one) => one !== version);
    }
    await this.#close(version);
  }

  async #close(version: ServedVersion, options?: CloseOptions): Promise<void> {
    this.#leaving.add(version);
    try {
      await version.close(options);
    } finally {
      if (!version.isStuck()) this.#leaving.delete(version);
    }
  }

  #withdraw(versions: readonly ServedVersion[]): void {
    this.#live = [];
    for (const version of versions) this.#listener.removed(version);
  }
}

/** Versions that wait for the end of their sequences: where a load brings one more, the oldest is closed, and its sequences end. */
const MAX_RETIRING = 4;

/**
 * Lets sequences of a version continue in the one that replaces it. False: there is none, or one of the two
 * has no sequences.
 */
function goesOn(old: ServedVersion, started: readonly ServedVersion[]): boolean {
  const next = started.find(({ model }) => model.version === old.model.version);
  if (old.sequences === undefined || next?.sequences === undefined) return false;
  next.sequences.goOnFrom(old.sequences);
  return true;
}
