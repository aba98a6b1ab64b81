import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CheckpointError } from './checkpoint.js';
import { isObject, readJsonObject } from './file-reading.js';
import type { RawTensor } from './raw-tensor.js';
import { readSafetensors } from './safetensors.js';

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
    const map = weightMap(join(directory, INDEX));
    return [...new Set(map.values())].sort().map((name) => join(directory, name));
  }
  const names = readdirSync(directory).filter((name) => name.endsWith('.safetensors'));
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
  const siblings = files.filter((other) => basename(other).startsWith(`${match[1]}-`)).length;
  if (siblings < Number(match[2])) {
    throw new CheckpointError(
      `${file}: is one of ${Number(match[2])} shards, but only ${siblings} are there.`,
    );
  }
}
