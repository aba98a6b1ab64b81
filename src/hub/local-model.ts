import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RepositoryCache } from './cache.js';
import { A_MODEL, AN_ADAPTER, type Wanted } from './chosen-files.js';
import { HubError } from './hub-error.js';
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

async function local(name: string, wanted: Wanted, options: LocalModelOptions): Promise<string> {
  if (existsSync(name)) return name;
  const repository = parseRepository(name);
  const { revision = DEFAULT_REVISION, settings = hubSettings(), ...rest } = options;
  if (repository === null) {
    const sentence = wanted === A_MODEL ? unknownName(name, settings.cacheFolder) : null;
    if (sentence !== null) throw new HubError(sentence);
    return name;
  }
  const cached = cachedPath(repository, revision, wanted, settings);
  if (cached !== null) return cached;
  try {
    return (await pull(repository, { settings, revision, wanted, ...rest })).path;
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
