import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CheckpointError } from './checkpoint.js';
import { type GgufHeader, readGguf } from './gguf.js';
import type { GgufMetadata } from './gguf-metadata.js';
import { isMmprojName } from './mmproj-files.js';

// A GGUF may be split into files of one name and a number, as llama-gguf-split writes them. The first has the metadata:
//
//   model-00001-of-00003.gguf   metadata, tensors   split.no 0, split.count 3, split.tensors.count of all
//   model-00002-of-00003.gguf             tensors   split.no 1, split.count 3
//   model-00003-of-00003.gguf             tensors   split.no 2, split.count 3

const PART = /^(?<name>.*)-(?<number>\d{5})-of-(?<count>\d{5})\.gguf$/i;

/** Number of a GGUF's part, from 1, and of all parts of its model; 1 of 1 where it is whole. */
export function partOf(file: string): { number: number; count: number } {
  const { number = 1, count = 1 } = PART.exec(file)?.groups ?? {};
  return { number: Number(number), count: Number(count) };
}

/** Name of a GGUF without the number of its part. */
export function withoutPartNumber(file: string): string {
  const { name } = PART.exec(file)?.groups ?? {};
  return name === undefined ? file : `${name}.gguf`;
}

/** The files of a GGUF of which `file` is one, first to last. @throws CheckpointError that names a missing part */
export function ggufParts(file: string): string[] {
  const { name, number, count: digits } = PART.exec(basename(file))?.groups ?? {};
  const count = Number(digits);
  if (name === undefined || count === 1) return [file];
  const names = new Set(readdirSync(dirname(file)));
  if (count === 0 || Number(number) === 0 || Number(number) > count)
    throw new CheckpointError(`${file}: there is no part ${number} of ${digits}; parts are numbered from 1.`);
  // Names that exist, since `count` may be far more.
  const parts = [...names].filter((one) => {
    const groups = PART.exec(one)?.groups;
    return groups?.name === name && groups.count === digits && Number(groups.number) >= 1;
  });
  if (parts.length < count) {
    let missing = 1;
    while (parts.some((one) => Number(PART.exec(one)!.groups!.number) === missing)) missing++;
    throw new CheckpointError(
      `${dirname(file)}: ${name}-${String(missing).padStart(5, '0')}-of-${digits}.gguf is missing; the model has ${count} parts.`,
    );
  }
  return parts.sort().map((one) => join(dirname(file), one));
}

/** Reads the headers of all parts as one: the first part's metadata, and the tensors of all. @throws CheckpointError */
export function readGgufParts(files: readonly string[]): GgufHeader {
  const headers = files.map((file) => readGguf(file));
  const [first, ...others] = headers as [GgufHeader, ...GgufHeader[]];
  for (const [i, { metadata }] of headers.entries()) checkPart(metadata, i, files.length);
  const tensors = [first, ...others].flatMap((header) => header.tensors);
  const told = first.metadata.number('split.tensors.count') ?? tensors.length;
  if (files.length > 1 && told !== tensors.length) {
    throw new CheckpointError(
      `${first.file}: split.tensors.count should be ${tensors.length}, the number of tensors in all parts, found ${told}.`,
    );
  }
  return { ...first, tensors };
}

function checkPart(metadata: GgufMetadata, place: number, count: number): void {
  const told = metadata.number('split.count') ?? 1;
  if (count === 1) {
    if (told <= 1) return;
    throw new CheckpointError(
      `${metadata.file}: is one of ${told} parts of a split model, and not named like one (NAME-00001-of-${String(told).padStart(5, '0')}.gguf).`,
    );
  }
  if (told !== count)
    throw new CheckpointError(
      `${metadata.file}: split.count should be ${count}, the number of parts in its name, found ${told}.`,
    );
  const number = metadata.number('split.no');
  if (number === place) return;
  throw new CheckpointError(`${metadata.file}: split.no should be ${place}, found ${number ?? 'nothing'}.`);
}

/**
 * The model among the GGUFs of a folder, by any of its files: what else lies there and is no model by itself, such as
 * an adapter or the part of a model that sees, is left out. @throws CheckpointError where several are models
 */
export function modelAmong(folder: string, names: readonly string[]): string {
  const distinct = [...new Map(names.map((name) => [withoutPartNumber(name), name])).values()].sort();
  if (distinct.length === 1) return join(folder, distinct[0]!);
  // Headers with a vocabulary take a tenth of a second.
  const models =
    distinct.length > MAX_READ ? distinct : distinct.filter((name) => isModel(join(folder, name)));
  if (models.length === 1) return join(folder, models[0]!);
  const shown = (models.length === 0 ? distinct : models).slice(0, 5).join(', ');
  throw new CheckpointError(
    models.length === 0
      ? `${folder}: holds ${distinct.length} GGUF files (${shown}), none of which is a model by itself.`
      : `${folder}: holds ${models.length} GGUF files (${shown}); name the one you mean.`,
  );
}

/** Most files whose headers are read to find the model. */
const MAX_READ = 8;

function isModel(file: string): boolean {
  if (isMmprojName(file)) return false;
  const [first] = ggufParts(file);
  const { metadata } = readGguf(first!);
  const type = metadata.string('general.type') ?? 'model';
  return type === 'model' && metadata.string('general.architecture') !== 'clip';
}
