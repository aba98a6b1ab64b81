import { readFileSync } from 'node:fs';
import type { TinyPrompt } from '../../tools/support/goldens.js';

/** Answers of PEFT and transformers by an adapter; both names are of folders in test/fixtures. */
export interface AdapterGolden {
  adapter: string;
  model: string;
  prompts: TinyPrompt[];
}

/** All of them, or those of one model. */
export function adapterGoldens(model?: string): AdapterGolden[] {
  const file = new URL('../goldens/lora.json', import.meta.url);
  const { adapters } = JSON.parse(readFileSync(file, 'utf8')) as { adapters: AdapterGolden[] };
  return adapters.filter((one) => model === undefined || one.model === model);
}
