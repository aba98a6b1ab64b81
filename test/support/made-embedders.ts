import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { safetensorsBytes } from '../../tools/support/safetensors-writer.js';
import { numbers } from './made-models.js';

/** A model of tools/reference/embedders.py: its weights are made here as they are there. */
export interface MadeEmbedder {
  name: string;
  /** A fixture's tokenizer.json, and the fields of it that are others. */
  tokenizer: { of: string; changed: Record<string, unknown> };
  /** JSON files by their path. */
  files: Record<string, unknown>;
  /** Tensors of each file of safetensors. */
  tensors: Record<string, [name: string, shape: number[], mean: number, spread: number][]>;
  /** Rows of lists of token ids. Absent: the model scores pairs. */
  cases?: { ids: number[]; output: number[] }[];
  texts?: { text: string; ids: number[]; output: number[] }[];
  /** Absent: the model scores no pairs. */
  pairs?: { pair: [query: string, document: string]; score: number }[];
  /** Embeddings of texts, weights of their tokens by ascending ids, and the vectors of all but the first. */
  tokens?: {
    text: string;
    ids: number[];
    output: number[];
    weights: [number, number][];
    vectors: number[][];
  }[];
  /** Names of a classifier's labels. */
  labels?: string[];
  /** Scores of labels of texts and of pairs. */
  classes?: { input: string | [string, string]; ids: number[]; scores: number[] }[];
}

const FILE = new URL('../goldens/embedders.json', import.meta.url);

export const MADE_EMBEDDERS = (JSON.parse(readFileSync(FILE, 'utf8')) as { models: MadeEmbedder[] }).models;

export function madeEmbedder(name: string): MadeEmbedder {
  return MADE_EMBEDDERS.find((one) => one.name === name)!;
}

/** Writes a model's folder. @param changed files of JSON in place of its own; null: the file is left out */
export function writeMadeEmbedder(
  folder: string,
  { tokenizer, files, tensors }: MadeEmbedder,
  changed: Record<string, unknown> = {},
): string {
  const write = (path: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  for (const [path, value] of Object.entries({ ...files, ...changed }))
    if (value !== null) write(path, JSON.stringify(value));
  const fixture = new URL(`../fixtures/${tokenizer.of}/tokenizer.json`, import.meta.url);
  if (Object.keys(tokenizer.changed).length === 0) copyFileSync(fixture, join(folder, 'tokenizer.json'));
  else
    write(
      'tokenizer.json',
      JSON.stringify({ ...JSON.parse(readFileSync(fixture, 'utf8')), ...tokenizer.changed }),
    );
  for (const [path, list] of Object.entries(tensors)) {
    const made = list.map(([name, shape, mean, spread]) => ({
      name,
      shape,
      data: new Uint8Array(numbers(name, shape, mean, spread).buffer),
    }));
    write(path, safetensorsBytes(made));
  }
  return folder;
}
