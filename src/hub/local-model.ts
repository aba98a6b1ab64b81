import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HubError } from '../errors/user-errors.js';
import { RepositoryCache } from './cache.js';
import { A_MODEL, AN_ADAPTER, type Wanted } from './chosen-files.js';
import type { RemoteModel } from './model-headers.js';
import { type PullProgress, pull } from './pull.js';
import { parseRepository, type Repository } from './repository.js';
import { type HubSettings, hubSettings } from './settings.js';
import { unknownName } from './short-names.js';

export const DEFAULT_REVISION = 'main';

export interface LocalModelOptions {
  revision?: string | undefined;
  onProgress?: ((progress: PullProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Default: the settings of the environment. */
  settings?: HubSettings;
}

/**
 * Local path of a model named by a path or as ORG/NAME[:QUANT]. An existing path is returned as it is. A repository
 * that is complete in the cache is taken without asking the hub: a start needs no network, and `skein pull` looks for
 * updates. @throws HubError, also for a short name such as `llama3`, with names to take in its place.
 */
export function localModel(model: string, options: LocalModelOptions = {}): Promise<string> {
  return local(model, A_MODEL, options);
}

/** The same of a LoRA adapter. @throws HubError. */
export function localAdapter(adapter: string, options: LocalModelOptions = {}): Promise<string> {
  return local(adapter, AN_ADAPTER, options);
}

/** A model to describe. */
export interface DescribedModel {
  /** Path to open. */
  path: string;
  /** What the hub has of it, where it is not here; null: it is here. */
  remote: RemoteModel | null;
}

/**
 * A model named as for localModel, to be described: of one that is not here no weights are downloaded, its headers alone are, into
 * `folder`. @throws HubError
 */
export async function describedModel(
  model: string,
  folder: () => string,
  options: Omit<LocalModelOptions, 'onProgress'> = {},
): Promise<DescribedModel> {
  const here = found(model, A_MODEL, options);
  if (typeof here === 'string') return { path: here, remote: null };
  const { revision = DEFAULT_REVISION, settings = hubSettings(), signal } = options;
  const { fetchHeaders } = await import('./model-headers.js');
  return orNeither(model, () => fetchHeaders(here, folder(), { settings, revision, signal, fetch }));
}

async function local(name: string, wanted: Wanted, options: LocalModelOptions): Promise<string> {
  const here = found(name, wanted, options);
  if (typeof here === 'string') return here;
  const { revision = DEFAULT_REVISION, settings = hubSettings(), ...rest } = options;
  return orNeither(name, async () => (await pull(here, { settings, revision, wanted, ...rest })).path);
}

/** The path of what is here, else the repository to ask the hub for. A name that is neither is returned as a path. @throws HubError */
function found(
  name: string,
  wanted: Wanted,
  { revision = DEFAULT_REVISION, settings = hubSettings() }: LocalModelOptions,
): string | Repository {
  if (existsSync(name)) return name;
  const repository = parseRepository(name);
  if (repository === null) {
    const sentence = wanted === A_MODEL ? unknownName(name, settings.cacheFolder) : null;
    if (sentence !== null) throw new HubError(sentence);
    return name;
  }
  return cachedPath(repository, revision, wanted, settings) ?? repository;
}

/** Asks the hub; an error says that there is no such file either. */
async function orNeither<T>(name: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof HubError)
      error.message = `There is no file or folder ${name} here, and ${error.message}`;
    throw error;
  }
}

/** Path of what is wanted, all of whose files are in the cache; null where one is missing. */
function cachedPath(
  repository: Repository,
  revision: string,
  { choose, isComplete }: Wanted,
  { cacheFolder }: HubSettings,
): string | null {
  const cache = new RepositoryCache(cacheFolder, repository);
  const commit = cache.commitOf(revision);
  if (commit === null) return null;
  try {
    const chosen = choose(cache.filesOf(commit), repository);
    if (!isComplete(chosen)) return null;
    return chosen.gguf === null ? cache.snapshot(commit) : join(cache.snapshot(commit), chosen.gguf);
  } catch (error) {
    if (error instanceof HubError) return null;
    throw error;
  }
}
