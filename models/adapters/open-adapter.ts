import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { fileSystemErrors } from '../checkpoints/file-reading.js';
import type { ModelConfig } from '../model-config.js';
import type { AdapterLimits, AdapterWeights } from './adapter-weights.js';
import { readGgufAdapter } from './gguf-adapter.js';
import { readPeftCheckpoint } from './peft-checkpoint.js';
import { PEFT_FILES } from './peft-files.js';

/**
 * Reads a LoRA adapter in any of its forms: a folder of PEFT, a GGUF file of llama.cpp, or a folder with one such file and no
 * safetensors.
 * @param config of the base model @throws CheckpointError
 */
export function openAdapter(path: string, config: ModelConfig, limits: AdapterLimits): AdapterWeights {
  const file = ggufFileOf(path);
  const files = filesOf(path, file);
  const before = stampOf(path, files);
  const weights =
    file === null ? readPeftCheckpoint(path, config, limits) : readGgufAdapter(file, config, limits);
  if (stampOf(path, files) === before) return weights;
  throw new CheckpointError(`${path}: its files changed while they were read; load it again.`);
}

/** @param gguf null: it is a folder of PEFT */
function filesOf(path: string, gguf: string | null): string[] {
  return gguf === null ? PEFT_FILES.map((name) => join(path, name)) : [gguf];
}

/** Changes with the files, and where one comes or goes. */
function stampOf(path: string, files: readonly string[]): string {
  return fileSystemErrors(path, () =>
    files
      .map((file) => {
        const { ino, size, mtimeNs } = statSync(file, { bigint: true, throwIfNoEntry: false }) ?? {};
        return `${ino} ${size} ${mtimeNs}`;
      })
      .join(),
  );
}

/** null: it is a folder of PEFT, or should be one. */
function ggufFileOf(path: string): string | null {
  return fileSystemErrors(path, () => {
    const status = statSync(path, { throwIfNoEntry: false });
    if (status?.isFile()) return ggufFile(path);
    if (!status?.isDirectory()) return null;
    const names = readdirSync(path);
    const files = names.filter((name) => name.endsWith('.gguf'));
    if (files.length === 0 || names.some((name) => name.endsWith('.safetensors'))) return null;
    if (files.length === 1) return join(path, files[0]!);
    throw new CheckpointError(`${path}: holds ${files.length} GGUF files; name the one that is the adapter.`);
  });
}

/** @throws CheckpointError for a file of a folder that is the adapter */
function ggufFile(path: string): string {
  if (!/\.(safetensors|json|bin)$/.test(path)) return path;
  throw new CheckpointError(
    `${path}: is a file of an adapter of PEFT; the folder that holds it is expected, or a GGUF file.`,
  );
}
