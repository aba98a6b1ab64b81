import { createHash } from 'node:crypto';
import { lstat, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { partOf, withoutPartNumber } from '../../../models/checkpoints/gguf-parts.js';
import { HubError } from '../../errors/user-errors.js';
import { RepositoryCache } from '../../hub/cache.js';
import { A_MODEL, quantOf } from '../../hub/chosen-files.js';

/** A model that lies in the folder, loaded or not. */
export interface StoredModel {
  /** Its name: NAME, ORG/NAME or ORG/NAME:QUANT. */
  name: string;
  /** What is loaded: a folder, or a GGUF file. */
  path: string;
  format: 'gguf' | 'safetensors' | 'engine';
  /** Precision that the file's name states; '': it states none. */
  quant: string;
  /** Bytes of its files. */
  size: number;
  /** Milliseconds since 1970 of the youngest file. */
  modifiedMs: number;
  /** Changes with its files, 64 hexadecimal digits. */
  digest: string;
  /** The repository of the hub that it comes from; null: it was put here. */
  repository: string | null;
  /** The one of its repository that is meant where a name has no precision. */
  isDefault: boolean;
}

/** Models that are looked at. */
const MAX_MODELS = 1000;
const NAME = /^[A-Za-z0-9][\w.:-]{0,199}$/;
const HUB_FOLDER = /^models--([\w.-]+?)--([\w.-]+)$/;

/**
 * A folder of models, which people fill by hand and pulls from the hub:
 *
 *   DIR/llama.gguf                            llama
 *   DIR/smollm2/config.json ...               smollm2           a folder with one GGUF, or an engine, does as well
 *   DIR/org/name/...                          org/name
 *   DIR/models--ORG--NAME/snapshots/...       ORG/NAME, ORG/NAME:Q8_0: pulled, in the layout of the hub's cache
 */
export class ModelStore {
  readonly folder: string;
  /** A look at the folder that is under way, which all who ask meanwhile share. */
  #looking: Promise<StoredModel[]> | null = null;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** All models, by name. */
  async list(): Promise<readonly StoredModel[]> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** The model of a name, whatever the case of its precision; null: there is none. */
  async find(name: string): Promise<StoredModel | null> {
    const models = await this.list();
    const folded = name.toLowerCase();
    return (
      models.find((model) => model.name === name) ??
      models.find((model) => model.isDefault && model.repository === name) ??
      models.find((model) => model.name.toLowerCase() === folded) ??
      null
    );
  }

  /**
   * True where what `remove` would delete lies in the folder. A folder in it may be a link to one elsewhere, whose files are not
   * this folder's to delete; where the model itself is a link, the link is.
   *
   *   DIR/linked -> /elsewhere/model          the link goes
   *   DIR/org -> /elsewhere, org/model        stays
   */
  async holds(model: StoredModel): Promise<boolean> {
    const root = await realpath(this.folder);
    const { paths } = await this.#partsOf(model);
    const places = await Promise.all(paths.map((path) => realpath(dirname(path)).catch(() => root)));
    return places.every((place) => place === root || place.startsWith(join(root, sep)));
  }

  /** Deletes a model's files. @throws Error where they lie elsewhere */
  async remove(model: StoredModel): Promise<void> {
    if (!(await this.holds(model))) throw new Error(`The files of '${model.name}' lie in another folder.`);
    const { paths, blobs } = await this.#partsOf(model);
    for (const path of paths) {
      const blob = blobs && (await realpath(path));
      await rm(path, { recursive: true, force: true });
      // A blob of other names stays: of the files next to the weights there is one for all.
      if (blob?.startsWith(join(await realpath(blobs!), sep))) await rm(blob, { force: true });
    }
  }

  /** What a model's end deletes: all that there is of it, or its weights where others of its repository stay, with their blobs. */
  async #partsOf(model: StoredModel): Promise<{ paths: string[]; blobs: string | null }> {
    const { repository, path, name } = model;
    if (repository === null) return { paths: [path], blobs: null };
    const { folder } = cacheOf(this.folder, repository);
    const others = (await this.list()).some((one) => one.repository === repository && one.name !== name);
    return others
      ? { paths: await filesOf(model), blobs: join(folder, 'blobs') }
      : { paths: [folder], blobs: null };
  }

  async #look(): Promise<StoredModel[]> {
    const found: StoredModel[] = [];
    for (const name of await namesIn(this.folder)) {
      if (found.length >= MAX_MODELS) break;
      const path = join(this.folder, name);
      const [, org, repository] = HUB_FOLDER.exec(name) ?? [];
      if (org !== undefined) found.push(...(await this.#ofHub(`${org}/${repository}`)));
      else {
        const model = await modelAt(path, name);
        if (model !== null) found.push(model);
        else
          for (const inner of await namesIn(path)) {
            const nested = await modelAt(join(path, inner), `${name}/${inner}`);
            if (nested !== null) found.push(nested);
          }
      }
    }
    return found.slice(0, MAX_MODELS).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Models of a repository of the hub that are whole. */
  async #ofHub(id: string): Promise<StoredModel[]> {
    const cache = cacheOf(this.folder, id);
    const commit = cache.commitOf('main');
    if (commit === null) return [];
    const files = cache.filesOf(commit);
    const root = cache.snapshot(commit);
    const chosen = chosenOf(files, id);
    if (chosen === null) return [];
    const of = { repository: id, isDefault: true };
    if (chosen.gguf === null) {
      const model = A_MODEL.isComplete(chosen) ? await modelAt(root, id) : null;
      return model === null ? [] : [{ ...model, ...of, path: root }];
    }
    const models = files
      .filter((path) => /\.gguf$/i.test(path) && partOf(path).number === 1)
      .map(async (path) => {
        const quant = quantOf(path);
        const model = await modelAt(join(root, path), quant === '' ? id : `${id}:${quant}`);
        return model && { ...model, ...of, isDefault: path === chosen.gguf };
      });
    return (await Promise.all(models)).filter((model) => model !== null);
  }
}

/** Files of a repository that make its usual model; null: there is none. */
function chosenOf(files: readonly string[], id: string) {
  try {
    return A_MODEL.choose(files, { id, quant: null });
  } catch (error) {
    if (error instanceof HubError) return null;
    throw error;
  }
}

function cacheOf(folder: string, id: string): RepositoryCache {
  return new RepositoryCache(folder, { id, quant: null });
}

/** Names in a folder that can be a model's; none where it is no folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => NAME.test(name)).sort();
  } catch {
    return [];
  }
}

/** The model of a file or a folder; null: it is not a model. */
async function modelAt(path: string, name: string): Promise<StoredModel | null> {
  const isFile = (await stat(path).catch(() => null))?.isFile();
  if (isFile === undefined || (isFile && !isFirstPart(path))) return null;
  const names = isFile ? [] : await namesIn(path);
  const ggufs = names.filter((one) => /\.gguf$/i.test(one));
  const format = isFile
    ? 'gguf'
    : names.includes('engine.json')
      ? 'engine'
      : names.some((one) => one.endsWith('.safetensors')) && names.includes('config.json')
        ? 'safetensors'
        : new Set(ggufs.map(withoutPartNumber)).size === 1
          ? 'gguf'
          : null;
  if (format === null) return null;
  const files = isFile ? await partsOf(path) : names.map((one) => join(path, one));
  const sizes = await sizesOf(files);
  const hash = createHash('sha256');
  for (const [i, { size, mtimeMs }] of sizes.entries())
    hash.update(`${names[i] ?? ''}\0${size}\0${mtimeMs}\n`);
  return {
    name: isFile ? withoutPartNumber(name).replace(/\.gguf$/i, '') : name,
    path,
    format,
    quant: quantOf(isFile ? path : (ggufs[0] ?? '')),
    size: sizes.reduce((sum, { size }) => sum + size, 0),
    modifiedMs: Math.max(0, ...sizes.map(({ mtimeMs }) => Math.round(mtimeMs))),
    digest: hash.digest('hex'),
    repository: null,
    isDefault: false,
  };
}

/** True for a GGUF that is no later part of one. */
const isFirstPart = (path: string) => /\.gguf$/i.test(path) && partOf(path).number === 1;

/** A GGUF, or all parts of it that are there. */
async function partsOf(path: string): Promise<string[]> {
  const name = withoutPartNumber(basename(path));
  const names = partOf(path).count === 1 ? [] : await namesIn(dirname(path));
  const parts = names.filter((one) => withoutPartNumber(one) === name);
  return parts.length === 0 ? [path] : parts.map((one) => join(dirname(path), one));
}

async function sizesOf(files: readonly string[]): Promise<{ size: number; mtimeMs: number }[]> {
  const found = await Promise.all(files.map((file) => stat(file).catch(() => null)));
  return found.map((one) => (one?.isFile() ? one : { size: 0, mtimeMs: 0 }));
}

/** Files that are the model's alone: its weights. */
async function filesOf({ path, format }: StoredModel): Promise<string[]> {
  if ((await lstat(path)).isDirectory()) {
    const names = await readdir(path);
    return names
      .filter((name) => (format === 'safetensors' ? name.includes('.safetensors') : /\.gguf$/i.test(name)))
      .map((name) => join(path, name));
  }
  return partsOf(path);
}
