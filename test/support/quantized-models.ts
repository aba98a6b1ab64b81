import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TinyPrompt } from '../../tools/support/goldens.js';
import { TINY_TOKENIZER } from './tiny-checkpoint.js';

/** A model of tools/reference/quantized.py, and what it stands for. */
export interface QuantizedModel {
  name: string;
  /** Its quantised matrices, dequantised to float32 by the library that defines the form. */
  matrices: { name: string; shape: [number, number]; sha256: string; first: number[] }[];
  prompts: TinyPrompt[];
}

const FIXTURES = fileURLToPath(new URL('../fixtures/quantized', import.meta.url));
const GOLDENS = new URL('../goldens/quantized.json', import.meta.url);

export const QUANTIZED_MODELS = (JSON.parse(readFileSync(GOLDENS, 'utf8')) as { models: QuantizedModel[] })
  .models;

const quantizedFixture = (name: string): string => join(FIXTURES, name);

/** Copies a model into a folder, with a tokenizer of six tokens. */
export function writeQuantizedModel(directory: string, name: string): string {
  cpSync(quantizedFixture(name), directory, { recursive: true });
  writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify(TINY_TOKENIZER));
  return directory;
}

export const quantizedNames = (): string[] => readdirSync(FIXTURES).sort();
