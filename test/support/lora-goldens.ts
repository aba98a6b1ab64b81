import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TinyPrompt } from '../../tools/support/goldens.js';
import { isMade, madeModelPath } from './made-models.js';

/** Answers of PEFT and transformers by an adapter; names are of folders in test/fixtures, or of a made model. */
export interface AdapterGolden {
  adapter: string;
  model: string;
  prompts: TinyPrompt[];
}

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Folders of the base model and of the adapter. @param folder in which a made model is written */
export function pathsOf({ adapter, model }: Pick<AdapterGolden, 'adapter' | 'model'>, folder: string) {
  return { model: isMade(model) ? madeModelPath(folder, model) : fixture(model), adapter: fixture(adapter) };
}

/** All of them, or those of one model. */
export function adapterGoldens(model?: string): AdapterGolden[] {
  const file = new URL('../goldens/lora.json', import.meta.url);
  const { adapters } = JSON.parse(readFileSync(file, 'utf8')) as { adapters: AdapterGolden[] };
  return adapters.filter((one) => model === undefined || one.model === model);
}
