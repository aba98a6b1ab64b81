import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import {
  type GgufTypeName,
  type TestTensor,
  type TypedValue,
  writeGguf,
} from '../../tools/support/gguf-writer.js';
import type { TinyPrompt } from '../../tools/support/goldens.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { interleave, TINY_GGUF_METADATA, TINY_TOKENIZER } from './tiny-checkpoint.js';

/** A model of tools/reference/families.py: its weights are made here as they are there. */
export interface MadeModel {
  name: string;
  config: Record<string, unknown>;
  /** Other names of its tensors that transformers reads too: each a list of beginnings and what takes their place. */
  layouts: [from: string, to: string][][];
  tensors: [name: string, shape: number[], mean: number, spread: number][];
  prompts: TinyPrompt[];
}

const FILE = new URL('../goldens/families.json', import.meta.url);

export const MADE_MODELS = (JSON.parse(readFileSync(FILE, 'utf8')) as { families: MadeModel[] }).families;

/** How a tensor of a GGUF is made of one in safetensors, or of several whose rows it has one after the other. */
interface MadeHow {
  addend?: 1;
  interleavedHeads?: number;
  firstRow?: number;
  rows?: number[];
  /** Of each expert the rows from `first` on, of `of`. */
  stack?: [first: number, of: number];
  /** Columns from `first` on of each matrix of a stack as rows, one in `step`; of a stack of vectors their entries. */
  columns?: [first: number, step: number];
  /** Rows (null: all) multiplied by factors, one after the other. */
  scaled?: [rows: number | null, factors: number[]][];
  values?: number[];
  joined?: string[];
  /** Matrices of [count, rows, columns] of which each was [columns, rows]. */
  turned?: true;
  /** By channel [rows, channels, height, width] what is by pixel in the model. */
  channelsFirst?: true;
  /** This frame of a convolution over frames [rows, channels, frames, height, width]. */
  frame?: number;
  /** Heads of values from `first` on along an axis: first those that come first of each key head, which has several. */
  tiled?: [axis: number, first: number, keyHeads: number, ofKey: number, width: number];
}

/** What llama.cpp's converter makes of one of them: see tools/reference/families-gguf.py. */
export interface MadeGguf {
  name: string;
  keys: [key: string, type: string, value: number | string | boolean | boolean[] | number[] | string[]][];
  /** Each with the tensor that it was made of, and how; `values` are those of one that was made of config.json. */
  tensors: [name: string, shape: number[], source: string, how: MadeHow][];
}

const GGUF_FILE = new URL('../goldens/families-gguf.json', import.meta.url);

const GGUFS = JSON.parse(readFileSync(GGUF_FILE, 'utf8')) as { families: MadeGguf[]; withHeads: MadeGguf[] };

export const MADE_GGUFS = GGUFS.families;

/** Of models with a head that guesses tokens: made-heads.ts writes them. */
export const GGUFS_WITH_HEADS = GGUFS.withHeads;

/** GGUF's names of the types of keys. */
const KEY_TYPES: Readonly<Record<string, Exclude<GgufTypeName, 'array'>>> = {
  STRING: 'string',
  UINT32: 'u32',
  FLOAT32: 'f32',
  BOOL: 'bool',
};

const ITEM_TYPES: Readonly<Record<string, 'f32' | 'string'>> = { FLOAT32: 'f32', STRING: 'string' };

/** A model's tensors by their names. */
export type MadeTensors = ReadonlyMap<string, MadeModel['tensors'][number]>;

/**
 * Writes the model as the converter would, with the weights that are made here; without a tokenizer it gets one of six tokens.
 * @param change makes another tensor of each
 */
export function writeMadeGguf(
  file: string,
  sources: MadeTensors,
  gguf: MadeGguf,
  change: (tensor: TestTensor) => TestTensor = (tensor) => tensor,
): string {
  const made = gguf.tensors.map(([name, shape, source, how]): TestTensor => {
    const { addend = 0, interleavedHeads, firstRow, rows, values, joined, tiled, turned } = how;
    const { stack, columns, scaled, frame, channelsFirst } = how;
    if (values !== undefined) return { name, shape, data: new Uint8Array(Float32Array.from(values).buffer) };
    if (joined !== undefined) {
      const parts = joined.map((one) => Buffer.from(numbers(...sources.get(one)!).buffer));
      const length = shape.reduce((product, one) => product * one, 4);
      return { name, shape, data: Buffer.concat(parts).subarray(0, length) };
    }
    const all = numbers(...sources.get(source)!).map((value) => value + addend);
    if (rows !== undefined) {
      const chosen = rows.flatMap((row) => [...all.subarray(row * shape[1]!, (row + 1) * shape[1]!)]);
      return { name, shape, data: new Uint8Array(Float32Array.from(chosen).buffer) };
    }
    if (frame !== undefined) {
      const taken = frameOf(all, sources.get(source)![1], frame);
      return { name, shape, data: new Uint8Array(taken.buffer) };
    }
    if (channelsFirst) return { name, shape, data: new Uint8Array(byChannel(all, shape).buffer) };
    if (columns !== undefined) {
      const taken = columnsOf(all, sources.get(source)![1], columns);
      return { name, shape, data: new Uint8Array(taken.buffer) };
    }
    if (stack !== undefined) return { name, shape, data: new Uint8Array(ofStack(all, shape, stack).buffer) };
    if (scaled !== undefined)
      return { name, shape, data: new Uint8Array(inParts(all, shape, scaled).buffer) };
    if (tiled !== undefined) return { name, shape, data: new Uint8Array(inTiles(all, shape, tiled).buffer) };
    if (turned) return { name, shape, data: new Uint8Array(eachTurned(all, shape).buffer) };
    const size = shape.reduce((product, one) => product * one, 1);
    const begin = firstRow === undefined ? 0 : firstRow * shape[1]!;
    const bytes = new Uint8Array(all.slice(begin, firstRow === undefined ? undefined : begin + size).buffer);
    const data = interleavedHeads === undefined ? bytes : interleave(bytes, shape[0]!, interleavedHeads);
    return { name, shape, data };
  });
  const tokenizer = Object.entries(TINY_GGUF_METADATA).filter(([key]) => key.startsWith('tokenizer.'));
  const keys = gguf.keys.map(([key, type, value]): [string, TypedValue] => [
    key,
    Array.isArray(value)
      ? {
          type: 'array',
          of: ITEM_TYPES[type] ?? (typeof value[0] === 'boolean' ? 'bool' : 'i32'),
          value,
        }
      : { type: KEY_TYPES[type]!, value },
  ]);
  writeGguf(file, Object.fromEntries([...tokenizer, ...keys]), made.map(change));
  return file;
}

function eachTurned(numbers: Float32Array, [, rows, columns]: readonly number[]): Float32Array {
  const size = rows! * columns!;
  return numbers.map((_, i) => {
    const within = i % size;
    return numbers[i - within + (within % columns!) * rows! + Math.floor(within / columns!)]!;
  });
}

function byChannel(
  numbers: Float32Array,
  [, channels = 1, height = 1, width = 1]: readonly number[],
): Float32Array<ArrayBuffer> {
  const size = height * width;
  return Float32Array.from(numbers, (_, i) => {
    const within = i % (channels * size);
    return numbers[i - within + (within % size) * channels + Math.floor(within / size)]!;
  });
}

function frameOf(numbers: Float32Array, shape: readonly number[], frame: number): Float32Array {
  const [, , frames = 1, height = 1, width = 1] = shape;
  const size = height * width;
  return numbers.filter((_, i) => Math.floor(i / size) % frames === frame);
}

/** Columns of each matrix of a stack as rows, or entries of each vector. */
function columnsOf(
  numbers: Float32Array,
  shape: readonly number[],
  [first, step]: NonNullable<MadeHow['columns']>,
): Float32Array {
  const width = shape.at(-1)!;
  const rows = shape.length === 3 ? shape[1]! : 1;
  const taken: number[] = [];
  for (let matrix = 0; matrix < shape[0]!; matrix++)
    for (let column = first; column < width; column += step)
      for (let row = 0; row < rows; row++) taken.push(numbers[(matrix * rows + row) * width + column]!);
  return Float32Array.from(taken);
}

function ofStack(
  numbers: Float32Array,
  [experts = 0, rows = 0, columns = 0]: readonly number[],
  [first, of]: NonNullable<MadeHow['stack']>,
): Float32Array {
  const chosen = new Float32Array(experts * rows * columns);
  for (let expert = 0; expert < experts; expert++) {
    const begin = (expert * of + first) * columns;
    chosen.set(numbers.subarray(begin, begin + rows * columns), expert * rows * columns);
  }
  return chosen;
}

function inParts(
  numbers: Float32Array,
  [rows = 0, columns = 0]: readonly number[],
  parts: NonNullable<MadeHow['scaled']>,
): Float32Array {
  const scaled = numbers.slice();
  let first = 0;
  for (const [count, factors] of parts) {
    const end = first + (count ?? rows) * columns;
    for (const factor of factors)
      for (let i = first; i < end; i++) scaled[i] = scaled[i]! * Math.fround(factor);
    first = end;
  }
  return scaled;
}

function inTiles(
  numbers: Float32Array,
  shape: readonly number[],
  [axis, first, keyHeads, ofKey, width]: NonNullable<MadeHow['tiled']>,
): Float32Array {
  const size = shape[axis]!;
  const inner = shape.slice(axis + 1).reduce((product, one) => product * one, 1);
  return numbers.map((number, i) => {
    const place = Math.floor(i / inner) % size;
    if (place < first) return number;
    const head = Math.floor((place - first) / width);
    const from = first + ((head % keyHeads) * ofKey + Math.floor(head / keyHeads)) * width;
    return numbers[i + (from + ((place - first) % width) - place) * inner]!;
  });
}

/**
 * Writes a folder with the model's config.json, safetensors and a tokenizer of six tokens.
 * @param change makes another tensor of each
 */
export function writeMadeModel(
  directory: string,
  { config, tensors }: Pick<MadeModel, 'config' | 'tensors'>,
  layout: MadeModel['layouts'][number] = [],
  change: (tensor: TestTensor) => TestTensor = (tensor) => tensor,
): string {
  const made = tensors.map(
    ([name, shape, mean, spread]): TestTensor => ({
      name: renamed(name, layout),
      shape,
      data: new Uint8Array(numbers(name, shape, mean, spread).buffer),
    }),
  );
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
  writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify(TINY_TOKENIZER));
  writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(made.map(change)));
  return directory;
}

export const isMade = (name: string): boolean => MADE_MODELS.some((one) => one.name === name);

/** Writes the made model of this name into a folder of its own in `folder`. */
export function madeModelPath(folder: string, name: string): string {
  const made = MADE_MODELS.find((one) => one.name === name);
  if (made === undefined) throw new Error(`No made model is named ${name}.`);
  return writeMadeModel(join(folder, name), made);
}

function renamed(name: string, layout: MadeModel['layouts'][number]): string {
  const [from, to] = layout.find(([prefix]) => name.startsWith(prefix)) ?? ['', ''];
  return to + name.slice(from.length);
}

/** As `numbers` of families.py: 16 bits of mulberry32 each, evenly around `mean`. */
export function numbers(name: string, shape: readonly number[], mean: number, spread: number): Float32Array {
  const length = shape.reduce((product, size) => product * size, 1);
  let a = crc32(name);
  return Float32Array.from({ length }, () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    const bits = ((t ^ (t >>> 14)) >>> 0) >>> 16;
    return mean + spread * 3 ** 0.5 * ((bits - 32767.5) / 32768);
  });
}
