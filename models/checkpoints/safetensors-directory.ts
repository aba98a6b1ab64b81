import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CheckpointError } from './checkpoint.js';
import { isObject, readJsonObject } from './file-reading.js';
import type { RawTensor } from './raw-tensor.js';
import { readSafetensors } from './safetensors.js';
import { TOKEN_LAYER_FILES } from './token-layers.js';

const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';
const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/**
 * The safetensors files of a model: model.safetensors, or the shards that an index names, or all *.safetensors in the
 * folder; an empty list without any. Sorted by name.
 */
export function safetensorsFiles(directory: string): string[] {
  if (existsSync(join(directory, SINGLE))) return [join(directory, SINGLE)];
  if (existsSync(join(directory, INDEX))) {
    const names = [...new Set(weightMap(join(directory, INDEX)).values())].sort();
    const missing = names.filter((name) => !existsSync(join(directory, name)));
    if (missing.length > 0) throw new CheckpointError(`${directory}: ${missingText(missing, names.length)}.`);
    return names.map((name) => join(directory, name));
  }
  const names = readdirSync(directory).filter(
    (name) => name.endsWith('.safetensors') && !TOKEN_LAYER_FILES.includes(name),
  );
  return names.sort().map((name) => join(directory, name));
}

/**
 * All tensors of a directory. Errors: a name in two shards, a missing shard, a shard without a tensor that the index
 * names.
 */
export function readSafetensorsDirectory(directory: string): RawTensor[] {
  const files = safetensorsFiles(directory);
  const tensors = new Map<string, RawTensor>();
  for (const file of files) {
    refuseMissingShards(file, files);
    for (const tensor of readSafetensors(file)) {
      const other = tensors.get(tensor.name);
      if (other) {
        throw new CheckpointError(`${file}: tensor ${tensor.name} is also in ${basename(other.file)}.`);
      }
      tensors.set(tensor.name, tensor);
    }
  }
  const index = join(directory, INDEX);
  if (!existsSync(join(directory, SINGLE)) && existsSync(index)) {
    for (const [name, shard] of weightMap(index)) {
      const found = tensors.get(name);
      if (!found || basename(found.file) !== shard) {
        const where = found ? `it is in ${basename(found.file)}` : 'it is not there';
        throw new CheckpointError(`${index}: tensor ${name} should be in ${shard}, but ${where}.`);
      }
    }
  }
  return [...tensors.values()];
}

function weightMap(index: string): Map<string, string> {
  const map = readJsonObject(index, MAX_INDEX_BYTES)?.weight_map;
  if (!isObject(map)) throw new CheckpointError(`${index}: should have an object "weight_map".`);
  const entries = new Map<string, string>();
  for (const [name, shard] of Object.entries(map)) {
    if (typeof shard !== 'string' || !/^[^/\\]+\.safetensors$/.test(shard)) {
      throw new CheckpointError(
        `${index}: tensor ${name} should name a .safetensors file of the same folder, found ${JSON.stringify(shard).slice(0, 100)}.`,
      );
    }
    entries.set(name, shard);
  }
  return entries;
}

/** Refuses a file such as model-00002-of-00003.safetensors without its siblings, even where there is no index. */
function refuseMissingShards(file: string, files: readonly string[]): void {
  const match = /^(.*)-\d{5}-of-(\d{5})\.safetensors$/.exec(basename(file));
  if (!match) return;
  const count = Number(match[2]);
  const there = new Set(files.map((other) => basename(other)));
  if (there.size >= count) return;
  const missing: string[] = [];
  for (let i = 1; i <= count && missing.length <= MAX_NAMED; i++) {
    const name = `${match[1]}-${String(i).padStart(5, '0')}-of-${match[2]}.safetensors`;
    if (!there.has(name)) missing.push(name);
  }
  if (missing.length > 0) throw new CheckpointError(`${dirname(file)}: ${missingText(missing, count)}.`);
}

/** Missing shards that a sentence names at most. */
const MAX_NAMED = 3;

function missingText(missing: readonly string[], count: number): string {
  const more = missing.length > MAX_NAMED ? ' and more' : '';
  return `${missing.slice(0, MAX_NAMED).join(', ')}${more} of the model's ${count} shards ${missing.length === 1 ? 'is' : 'are'} missing`;
}
