import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MadeModel } from './made-models.js';
import type { MadeTower } from './made-towers.js';
import { writeMadeTower } from './made-towers.js';

/** A model of tools/reference/two_towers.py: its weights and pictures are made here as they are there. */
export interface MadeTwoTowers
  extends Pick<MadeModel, 'name' | 'config' | 'tensors'>,
    Pick<MadeTower, 'pictures' | 'grids'> {
  tokenizer: object;
  tokenizerConfig: object;
  /** Embedding of each picture. */
  pictureRows: number[][];
  /** How pictures are prepared: to the one size that the model sees. */
  imageProcessor: object;
  /** Files of the goldens of pictures, each with its embedding. */
  files: { file: string; row: number[] }[];
  /** Each with its tokens, without padding, and its embedding. */
  texts: { text: string; tokens: number[]; row: number[] }[];
}

const FILE = new URL('../goldens/two-towers.json', import.meta.url);

export const MADE_TWO_TOWERS = (JSON.parse(readFileSync(FILE, 'utf8')) as { models: MadeTwoTowers[] }).models;

/** Writes the model with its tokenizer and image processor into a folder of its own in `folder`. */
export function writeTwoTowers(folder: string, made: MadeTwoTowers): string {
  const directory = writeMadeTower(folder, made);
  const write = (name: string, value: object) => writeFileSync(join(directory, name), JSON.stringify(value));
  write('tokenizer.json', made.tokenizer);
  write('tokenizer_config.json', made.tokenizerConfig);
  write('preprocessor_config.json', made.imageProcessor);
  return directory;
}
