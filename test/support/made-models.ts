import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { TestTensor } from '../../tools/support/gguf-writer.js';
import type { TinyPrompt } from '../../tools/support/goldens.js';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { TINY_TOKENIZER } from './tiny-checkpoint.js';

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

/** Writes a folder with the model's config.json, safetensors and a tokenizer of six tokens. */
export function writeMadeModel(
  directory: string,
  { config, tensors }: MadeModel,
  layout: MadeModel['layouts'][number] = [],
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
  writeFileSync(join(directory, 'model.safetensors'), safetensorsBytes(made));
  return directory;
}

function renamed(name: string, layout: MadeModel['layouts'][number]): string {
  const [from, to] = layout.find(([prefix]) => name.startsWith(prefix)) ?? ['', ''];
  return to + name.slice(from.length);
}

/** As `numbers` of families.py: 16 bits of mulberry32 each, evenly around `mean`. */
function numbers(name: string, shape: readonly number[], mean: number, spread: number): Float32Array {
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
