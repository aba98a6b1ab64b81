import { messageOf } from '../../../base/error-text.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { MAX_DEPTH } from '../ensembles/step-limit.js';
import type { InferModel } from '../infer-model.js';
import type { IndexRow, LoadParameters, ModelRepository } from '../model-repository.js';
import { CommandQueue } from './command-queue.js';
import { chainLength, checkCircle, Dependents } from './dependents.js';
import { Endpoints } from './endpoints.js';
import { type EntryListener, ModelEntry } from './model-entry.js';
import type { ModelSource, ServedVersion } from './model-source.js';

/** What may change the loaded models: nothing, clients, or the contents of the folders. */
export type ControlMode = 'none' | 'explicit' | 'poll';

/** A model as a look at the folders found it. */
export interface FoundModel {
  source: ModelSource;
  /** Changes with the files. */
  stamp: string;
}

export interface ServingRepositoryOptions {
  mode: ControlMode;
  /** Looks at the folders. Absent: there are none. */
  scan?: () => Promise<ReadonlyMap<string, FoundModel>>;
  /** Where a model of this name comes from that has no folder, and whose files come with a load. Absent: loads bring no files. */
  uploads?: (name: string) => ModelSource;
  listener: EntryListener;
  /**
   * Called for failures without a caller, such as that of a model that a look at the folders wanted to load.
   */
  onError: (error: Error) => void;
  /** How long a model that is unloaded may continue to answer, in milliseconds. */
  drainMs: number;
}

/**
 * Milliseconds that a model's code may run on after its last answer; then its worker is ended, or its name
 * would never be free.
 */
const LAST_MS = 5000;

const NO_FOLDERS: ReadonlyMap<string, FoundModel> = new Map();

/** The queue's name for looks at the folders; no model's, since a folder's name has no slash. */
const FOLDERS = '/';

/**
 * Models by name, from folders and from the command line alike, and all that changes them.
 *
 *   clients: load, unload --+
 *   folders: poll           +--> CommandQueue --> ModelEntry: load, unload --> ModelSource: plan, start
 *   the start of the server-+
 */
export class ServingRepository implements ModelRepository {
  readonly #options: ServingRepositoryOptions;
  readonly #entries = new Map<string, ModelEntry>();
  readonly #queue = new CommandQueue();
  readonly #endpoints = new Endpoints();
  readonly #dependents = new Dependents();
  /** Models that were unloaded, until what needs them is withdrawn too. */
  readonly #withdrawn = new Map<string, Promise<void>>();
  /** The folders as they were at the latest look; null: there was none. */
  #found: ReadonlyMap<string, FoundModel> | null = null;
  /** Aborted when the repository is closed: what is being loaded then need not be. */
  readonly #closing = new AbortController();
  /** Of each model of the folders, as it was when it was loaded last. */
  readonly #stamps = new Map<string, string>();
  /** Models that the server loads when they are asked for. */
  readonly #brought = new Set<string>();
  /** Models that the start has not loaded yet; null: the start is over. */
  #starting: Set<string> | null;

  constructor(options: ServingRepositoryOptions) {
    this.#options = options;
    this.#starting = options.scan === undefined ? null : new Set();
  }

  /**
   * Models that the start has neither loaded nor found wrong yet; empty while the folders are read. Null: the start is over, or there are no
   * folders.
   */
  get starting(): readonly string[] | null {
    return this.#starting === null ? null : [...this.#starting];
  }

  find(name: string, version: string): InferModel {
    return this.#entry(name).find(version);
  }

  versions(name: string): readonly InferModel[] {
    return this.#entry(name).models;
  }

  isReady(name: string, version: string): boolean {
    const models = this.#entries.get(name)?.models ?? [];
    return version === '' ? models.length > 0 : models.some((model) => model.version === version);
  }

  holds(name: string): boolean {
    return this.#entries.get(name)?.isNameHeld === true;
  }

  loaded(): readonly InferModel[] {
    return [...this.#entries.values()].flatMap(({ models }) => models);
  }

  rows(): readonly IndexRow[] {
    return [...this.#entries.values()].flatMap(({ index }) => index);
  }

  async index({ readyOnly }: { readyOnly: boolean }): Promise<readonly IndexRow[]> {
    await this.#look();
    const rows = this.rows();
    return readyOnly ? rows.filter(({ state }) => state === 'READY') : rows;
  }

  async load(name: string, parameters: LoadParameters = {}): Promise<string> {
    this.#checkMode();
    await this.#look();
    if (!this.#entries.has(name)) this.#noteUpload(name, parameters);
    this.#dependents.name(name);
    return this.#load(name, { ...parameters, ...this.#valuesOf(name, parameters) });
  }

  /**
   * A client's load of a model without parameters asks for the model without parameters, whatever others have loaded it with. One of
   * an endpoint (M-0) names its parameters: they stay.
   */
  #valuesOf(name: string, { values, share }: LoadParameters): Pick<LoadParameters, 'values'> {
    const isEndpoint = this.#endpoints.modelOf(name) !== name;
    return values === undefined && share === undefined && !isEndpoint ? { values: {} } : {};
  }

  async unload(name: string, { unloadDependents = false } = {}): Promise<void> {
    this.#checkMode();
    await this.#look();
    const names = unloadDependents
      ? this.#dependents.withTheirs([name, ...this.#endpoints.of(name)])
      : [name];
    const leaving = [...new Set(names)].flatMap((one) => this.#entries.get(one) ?? []);
    for (const one of leaving) this.#dependents.forget(one.name);
    await Promise.all(leaving.map((one) => this.#unload(one)));
  }

  /** Adds a model of the command line, which runs already, as if by a plan of this identity. @throws an Error where there is one of its name */
  adopt(name: string, source: ModelSource, version: ServedVersion, identity: string): void {
    if (this.#entries.has(name)) throw new Error(`There is a model '${name}' already.`);
    const entry = this.#entryOf(name, source);
    this.#entries.set(name, entry);
    this.#endpoints.keep(name);
    entry.adopt(version, identity);
  }

  /**
   * Loads a model that the server brings by itself and takes away again, whatever clients may change. @throws InferError with what is wrong; an
   * Error where another model has its name
   */
  async bring(name: string, source: ModelSource): Promise<void> {
    if (this.#entries.has(name) && !this.#brought.has(name))
      throw new Error(`There is a model '${name}' already.`);
    this.#brought.add(name);
    this.#entries.set(name, this.#entries.get(name) ?? this.#entryOf(name, source));
    this.#entries.get(name)!.source = source;
    this.#dependents.name(name);
    try {
      await this.#load(name, {});
    } catch (error) {
      this.#dropBrought(name);
      throw error;
    }
  }

  /** Unloads a model that the server brought; resolves when it is freed. */
  async takeAway(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined || !this.#brought.has(name)) return;
    this.#dependents.forget(name);
    await this.#unload(entry);
    this.#dropBrought(name);
  }

  #entryOf(name: string, source: ModelSource): ModelEntry {
    return new ModelEntry(name, { source, isOfFolder: false }, this.#options.listener);
  }

  #dropBrought(name: string): void {
    if (this.#entries.get(name)?.models.length !== 0 || this.#queue.has(name)) return;
    this.#entries.delete(name);
    this.#brought.delete(name);
    this.#dependents.forget(name);
  }

  /**
   * Loads these models of the folders; null: all. @throws InferError with what is wrong with each model that cannot be loaded; the
   * others are loaded
   */
  async start(names: readonly string[] | null): Promise<void> {
    try {
      await this.#start(names);
    } finally {
      this.#starting = null;
    }
  }

  async #start(names: readonly string[] | null): Promise<void> {
    const found = await this.#look();
    const wanted = names ?? [...found.keys()];
    for (const name of wanted) this.#dependents.name(name);
    const starting = new Set(wanted);
    this.#starting = starting;
    const loads = wanted.map((name) => this.#load(name, {}).finally(() => starting.delete(name)));
    const results = await Promise.allSettled(loads);
    const problems = results.flatMap((result) =>
      result.status === 'rejected' ? [messageOf(result.reason)] : [],
    );
    for (const name of wanted) this.#stamps.set(name, found.get(name)?.stamp ?? '');
    for (const name of wanted) {
      if (this.#entries.get(name)?.isOfFolder === false && found.has(name)) {
        problems.push(`failed to load '${name}', the command line names another model so`);
      }
    }
    if (problems.length > 0) throw new InferError(problems.join('\n'), 'invalid');
  }

  /** Looks at the folders and loads what is new or has changed, and unloads what is gone. Errors go to `onError`. */
  async poll(): Promise<void> {
    let found: ReadonlyMap<string, FoundModel>;
    try {
      found = await this.#look();
    } catch (error) {
      this.#options.onError(error as Error);
      return;
    }
    const changes = Array.from(found, async ([name, { stamp }]) => {
      if (this.#stamps.get(name) === stamp) return;
      this.#stamps.set(name, stamp);
      this.#dependents.name(name);
      await this.#load(name, {});
    });
    for (const name of [...this.#stamps.keys()].filter((one) => !found.has(one))) {
      this.#stamps.delete(name);
      this.#dependents.forget(name);
      const entry = this.#entries.get(name);
      if (entry !== undefined) changes.push(this.#unload(entry));
    }
    for (const result of await Promise.allSettled(changes)) {
      if (result.status === 'rejected') this.#options.onError(result.reason as Error);
    }
  }

  /** Some model is in a native call that does not return. */
  isStuck(): boolean {
    return [...this.#entries.values()].some((entry) => entry.isStuck());
  }

  /** Takes no more changes and closes every model. */
  async close(options: CloseOptions): Promise<void> {
    this.#closing.abort(new Error('The server is shutting down.'));
    await this.#queue.close();
    await Promise.all(Array.from(this.#entries.values(), (entry) => entry.unload(options)));
  }

  /** @param path the models that need it, the one that was asked for first */
  async #load(
    name: string,
    { values, share, ...parameters }: LoadParameters,
    path: readonly string[] = [],
  ): Promise<string> {
    const model = this.#entry(name);
    const endpoint = this.#endpointFor(name, values, share);
    const entry = endpoint === name ? model : this.#endpointEntry(endpoint, model);
    const given = this.#endpoints.values(endpoint);
    // The command takes its place among the model's at once, and runs when what it needs is there.
    const needs = this.#loadNeeds(entry, parameters, [...path, name]);
    needs.catch(() => {});
    const isPlain = parameters.config === undefined && parameters.files === undefined && share !== false;
    let following: Promise<void> | undefined;
    try {
      await this.#queue.run(endpoint, isPlain ? 'load' : null, async () => {
        await needs;
        // The first load of an endpoint has no other to share with.
        const more = share === false && entry.models.length > 0 ? 1 : 0;
        const addedInstances = this.#endpoints.added(endpoint) + more;
        const { signal } = this.#closing;
        const uploaded = parameters.files === undefined ? undefined : this.#options.uploads?.(name);
        this.#dependents.note(endpoint, entry.needs(parameters));
        const asked = { ...parameters, values: given, addedInstances, signal };
        if (await entry.load(asked, uploaded)) following = this.#follow(endpoint);
        this.#endpoints.note(endpoint, name, given, addedInstances);
      });
      // A load that waits for this one goes before what follows it.
      if (path.length === 0) await following;
    } catch (error) {
      if (entry.models.length === 0 && !this.#queue.has(endpoint)) this.#endpoints.forget(endpoint);
      throw error;
    }
    return endpoint;
  }

  /** An entry for a model that has no folder, and whose files come with its load. @throws InferError where none come */
  #noteUpload(name: string, { files }: LoadParameters): void {
    if (files === undefined || this.#options.uploads === undefined) {
      const reason =
        this.#options.scan === undefined
          ? 'the server has no --model-repository'
          : 'no folder of this name is in --model-repository';
      throw new InferError(
        `failed to load '${name}', failed to poll from model repository: ${reason}`,
        'invalid',
      );
    }
    if (!isModelName(name)) {
      const expected = `at most ${LONGEST_NAME} bytes, without a slash, and without a dot in front`;
      throw new InferError(`failed to load '${name}', it can be no name of a model: ${expected}`, 'invalid');
    }
    this.#entries.set(name, new ModelEntry(name, { source: null, isOfFolder: true }, this.#options.listener));
  }

  #endpointFor(name: string, values: LoadParameters['values'], share: boolean | undefined): string {
    const isEndpoint = this.#endpoints.modelOf(name) !== name;
    if (values === undefined && (share === undefined || isEndpoint)) {
      this.#endpoints.keep(name);
      return name;
    }
    try {
      return this.#endpoints.nameFor(name, values ?? {}, (taken) => this.#entries.has(taken));
    } catch (error) {
      throw new InferError(`failed to load '${name}', ${messageOf(error)}`, 'invalid');
    }
  }

  #endpointEntry(endpoint: string, { source, isOfFolder }: ModelEntry): ModelEntry {
    let entry = this.#entries.get(endpoint);
    if (entry === undefined) {
      entry = new ModelEntry(endpoint, { source, isOfFolder }, this.#options.listener);
      this.#entries.set(endpoint, entry);
    }
    return entry;
  }

  /**
   * Loads what a model needs: what is not loaded yet, or has changed. The load of the model itself reports
   * what cannot be loaded.
   * @param path the model, after those that need it
   */
  async #loadNeeds(entry: ModelEntry, parameters: LoadParameters, path: readonly string[]): Promise<void> {
    const needs = new Set(entry.needs(parameters));
    if (needs.size === 0) return;
    try {
      const needsOf = (name: string) =>
        name === entry.name ? [...needs] : (this.#entries.get(name)?.needs({}) ?? []);
      checkCircle(entry.name, needsOf);
      if (chainLength(entry.name, needsOf) > MAX_DEPTH)
        throw new Error(`it would lie in ${MAX_DEPTH} ensembles within each other`);
    } catch (error) {
      throw entry.refuse(error);
    }
    const loads = Array.from(needs, async (name) => {
      if (!path.includes(name) && this.#entries.get(name)?.isRepeatable) await this.#load(name, {}, path);
    });
    await Promise.allSettled(loads);
  }

  async #unload(entry: ModelEntry): Promise<void> {
    const { name } = entry;
    await this.#queue.run(name, 'unload', async () => {
      await entry.unload(this.#leaving, () => this.#withdrawn.set(name, this.#follow(name)));
      this.#endpoints.forget(name);
    });
    await this.#withdrawn.get(name);
    this.#withdrawn.delete(name);
  }

  get #leaving(): CloseOptions {
    return { timeoutMs: this.#options.drainMs, terminateAfterMs: LAST_MS };
  }

  /** A model has come, changed or gone: what needs it is reloaded, or withdrawn until it comes back. */
  async #follow(name: string): Promise<void> {
    const follows = this.#dependents.of(name).map(async (dependent) => {
      const entry = this.#entries.get(dependent);
      if (entry === undefined) return;
      let following: Promise<void> | undefined;
      const onChange = () => {
        following = this.#follow(dependent);
      };
      await this.#queue.run(dependent, 'follow', () => entry.follow(this.#leaving, onChange));
      await following;
    });
    for (const result of await Promise.allSettled(follows))
      if (result.status === 'rejected') this.#options.onError(result.reason as Error);
  }

  /**
   * Looks at the folders, one look at a time and in the order of the commands that wait for it, so that none overtakes another.
   */
  async #look(): Promise<ReadonlyMap<string, FoundModel>> {
    const { scan } = this.#options;
    if (scan === undefined) return NO_FOLDERS;
    await this.#queue.run(FOLDERS, 'look', async () => {
      this.#found = await scan();
      this.#note(this.#found);
    });
    return this.#found ?? NO_FOLDERS;
  }

  /** Entries for what is new in the folders; no source for what is gone. */
  #note(found: ReadonlyMap<string, FoundModel>): void {
    for (const [name, { source }] of found) {
      const entry = this.#entries.get(name);
      if (entry === undefined) {
        this.#entries.set(name, new ModelEntry(name, { source, isOfFolder: true }, this.#options.listener));
      } else if (entry.isOfFolder) entry.source = source;
    }
    for (const entry of this.#entries.values()) {
      const isGone = entry.isOfFolder && !found.has(this.#endpoints.modelOf(entry.name));
      if (isGone) entry.source = null;
      if (isGone && entry.models.length === 0 && !this.#queue.has(entry.name))
        this.#entries.delete(entry.name);
    }
  }

  #entry(name: string): ModelEntry {
    const entry = this.#entries.get(name);
    if (entry !== undefined) return entry;
    if (this.#found === null && this.#options.scan !== undefined) {
      throw new InferError(`Request for model '${name}': the model repository is being read`, 'unavailable');
    }
    throw new InferError(`Request for unknown model: '${name}' is not found`, 'notFound');
  }

  /** @throws InferError in Triton's words, which its clients look for, where clients may not change what is loaded */
  #checkMode(): void {
    const { mode } = this.#options;
    if (mode === 'explicit') return;
    const inNone = mode === 'none' ? ', nor with --model-control-mode none: explicit is expected' : '';
    throw new InferError(
      `explicit model load / unload is not allowed if polling is enabled${inNone}`,
      'unavailable',
    );
  }
}

/** Bytes of a name that a folder may have everywhere. */
const LONGEST_NAME = 200;

/** A folder of a repository may have this name. */
function isModelName(name: string): boolean {
  return /^[^./\\\0][^/\\\0]*$/.test(name) && Buffer.byteLength(name) <= LONGEST_NAME;
}
