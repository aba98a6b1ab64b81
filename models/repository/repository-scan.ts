import { createHash } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { ModelConfigError } from './model-config-error.js';
import { CONFIG_FILES } from './read-model-config.js';
import { byNumber, isVersion } from './versions.js';

/** A folder of a repository. */
export interface ScannedModel {
  name: string;
  directory: string;
  /** Versions that have a folder, lowest first. */
  versions: string[];
  /** Changes with any file of the model: its size, or the time of its last change. */
  stamp: string;
  /** The same of all files but the configuration. */
  filesStamp: string;
  /** Why it cannot be served, such as a second folder of its name; null: nothing is known against it. */
  problem: string | null;
}

/** Files of one model that are looked at; a folder with more is no model. */
const MAX_FILES = 10_000;
const DEEPEST = 8;
const MAX_MODELS = 10_000;

/** Models of all folders, by name. @throws ModelConfigError where a folder cannot be read */
export async function scanRepositories(directories: readonly string[]): Promise<Map<string, ScannedModel>> {
  const models = new Map<string, ScannedModel>();
  for (const repository of directories) {
    for (const { name, isDirectory } of await entriesOf(repository)) {
      if (!isDirectory || name.startsWith('.')) continue;
      const directory = join(repository, name);
      const other = models.get(name);
      if (other !== undefined) {
        other.problem = `it is in two repositories, ${other.directory} and ${directory}`;
        continue;
      }
      if (models.size >= MAX_MODELS) {
        throw new ModelConfigError(`${repository}: there are more than ${MAX_MODELS} models.`);
      }
      const model = await scanModel(name, directory);
      if (model.problem === null && isVersion(name) && model.versions.length === 0) {
        model.problem = `${repository} seems to be the folder of a model, of which this is a version: the folder around it is expected as a model repository`;
      }
      models.set(name, model);
    }
  }
  return models;
}

async function scanModel(name: string, directory: string): Promise<ScannedModel> {
  try {
    const entries = await entriesOf(directory);
    const versions = entries.filter((entry) => entry.isDirectory && isVersion(entry.name));
    const stamps = await stampsOf(directory);
    return {
      name,
      directory,
      versions: versions.map((entry) => entry.name).sort(byNumber),
      ...stamps,
      problem: null,
    };
  } catch (error) {
    return { name, directory, versions: [], stamp: '', filesStamp: '', problem: messageOf(error) };
  }
}

interface Entry {
  name: string;
  /** Links to folders are folders. */
  isDirectory: boolean;
}

async function entriesOf(directory: string): Promise<Entry[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(directory, { withFileTypes: true });
  } catch (error) {
    throw new ModelConfigError(`${directory} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  return Promise.all(
    entries.map(async (entry) => ({
      name: entry.name,
      isDirectory: entry.isSymbolicLink()
        ? await stat(join(directory, entry.name)).then(
            (one) => one.isDirectory(),
            () => false,
          )
        : entry.isDirectory(),
    })),
  );
}

/** Of files below the folder: paths, sizes and times. */
async function stampsOf(directory: string): Promise<Pick<ScannedModel, 'stamp' | 'filesStamp'>> {
  const [all, files] = [createHash('sha256'), createHash('sha256')];
  let count = 0;
  const visit = async (folder: string, path: string, depth: number): Promise<void> => {
    if (depth > DEEPEST) throw new ModelConfigError(`${folder} is more than ${DEEPEST} folders deep.`);
    const entries = await entriesOf(folder);
    for (const { name, isDirectory } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (++count > MAX_FILES) throw new ModelConfigError(`${directory} has more than ${MAX_FILES} files.`);
      if (isDirectory) await visit(join(folder, name), `${path}${name}/`, depth + 1);
      else {
        const found = await stat(join(folder, name)).catch(() => null);
        const line = `${path}${name}\0${found?.size}\0${found?.mtimeMs}\n`;
        all.update(line);
        if (path !== '' || !CONFIG_FILES.includes(name)) files.update(line);
      }
    }
  };
  await visit(directory, '', 0);
  const [stamp, filesStamp] = [all, files].map((hash) => hash.digest('hex').slice(0, 16));
  return { stamp: stamp!, filesStamp: filesStamp! };
}
