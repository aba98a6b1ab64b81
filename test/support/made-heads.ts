import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  GGUFS_WITH_HEADS,
  MADE_MODELS,
  type MadeModel,
  writeMadeGguf,
  writeMadeModel,
} from './made-models.js';

/** What the head of a made model guesses: see tools/reference/draft-heads.py. */
export interface MadeHead {
  /** Of its model. */
  name: string;
  tensors: MadeModel['tensors'];
  ids: number[];
  /** Logits at places of the sequence, each read next to the token after it. */
  logits: { place: number; values: number[] }[];
  /** Tokens that it guesses after the sequence, and its logits for each. */
  rounds: { token: number; logits: number[] }[];
}

const FILE = new URL('../goldens/draft-heads.json', import.meta.url);

export const MADE_HEADS = (JSON.parse(readFileSync(FILE, 'utf8')) as { heads: MadeHead[] }).heads;

/** Writes the GGUF that llama.cpp's converter makes of a made model with its head. */
export function madeHeadGguf(file: string, model: string): string {
  const { tensors } = MADE_MODELS.find(({ name }) => name === model)!;
  const head = MADE_HEADS.find(({ name }) => name === model)!;
  const sources = new Map([...tensors, ...head.tensors].map((tensor) => [tensor[0], tensor]));
  return writeMadeGguf(file, sources, GGUFS_WITH_HEADS.find(({ name }) => name === model)!);
}

/** Writes a made model with its head into a folder of its own in `folder`. */
export function madeHeadPath(folder: string, name: string): string {
  const model = MADE_MODELS.find((one) => one.name === name);
  const head = MADE_HEADS.find((one) => one.name === name);
  if (model === undefined || head === undefined)
    throw new Error(`No made model with a head is named ${name}.`);
  return writeMadeModel(join(folder, `${name}-mtp`), {
    ...model,
    tensors: [...model.tensors, ...head.tensors],
  });
}
