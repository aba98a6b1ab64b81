import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TowerPicture } from '../../callbacks/tower-messages.js';
import { type MadeModel, numbers, writeMadeModel } from './made-models.js';

/** A model of tools/reference/towers.py: its weights and pictures are made here as they are there. */
export interface MadeTower extends Pick<MadeModel, 'name' | 'config' | 'tensors'> {
  /** Patches of each picture, and its grid. */
  pictures: [name: string, shape: number[], mean: number, spread: number][];
  grids: [rows: number, columns: number][];
  /** Rows of all pictures [rows x width]. */
  width: number;
  rows: number[][];
  /** A prompt with all pictures, the place where each begins, and its greedy answer. */
  prompt: number[];
  places: number[];
  tokens: number[];
  logProbs: number[];
}

const FILE = new URL('../goldens/towers.json', import.meta.url);

export const MADE_TOWERS = (JSON.parse(readFileSync(FILE, 'utf8')) as { towers: MadeTower[] }).towers;

/** Writes the model into a folder of its own in `folder`. */
export const writeMadeTower = (
  folder: string,
  made: Pick<MadeTower, 'name' | 'config' | 'tensors'>,
): string => writeMadeModel(join(folder, made.name), made);

export function madeTower(name: string): MadeTower {
  const made = MADE_TOWERS.find((one) => one.name === name);
  if (made === undefined) throw new Error(`No made tower is named ${name}.`);
  return made;
}

export function madePictures({ pictures, grids }: Pick<MadeTower, 'pictures' | 'grids'>): TowerPicture[] {
  return pictures.map((picture, i) => {
    const [rows, columns] = grids[i]!;
    return { patches: numbers(...picture), grid: { rows, columns } };
  });
}
