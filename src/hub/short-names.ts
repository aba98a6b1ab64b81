import { storedModels } from './stored-models.js';

/** A small model of each family, by the beginning of the names that people give to models of it. */
const BY_FAMILY: readonly (readonly [prefix: string, id: string])[] = [
  ['deepseek', 'bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF'],
  ['gemma', 'bartowski/gemma-2-2b-it-GGUF'],
  ['llama', 'bartowski/Llama-3.2-1B-Instruct-GGUF'],
  ['mixtral', 'mistralai/Mixtral-8x7B-Instruct-v0.1'],
  ['mistral', 'bartowski/Mistral-7B-Instruct-v0.3-GGUF'],
  ['phi', 'bartowski/Phi-3.5-mini-instruct-GGUF'],
  ['qwen', 'Qwen/Qwen3-0.6B-GGUF'],
];
const SMALLEST = 'HuggingFaceTB/SmolLM2-135M-Instruct';
const MAX_STORED = 3;
/** What a name of a model looks like, as other programs take it: `llama3`, `llama3.2:1b`. */
const SHORT_NAME = /^[a-z0-9][\w.-]*(:[\w.-]+)?$/i;

/**
 * What to say of a text that is no file here and no ORG/NAME: the models of the cache whose names are like it, or else one of
 * the hub. null: it is a path.
 */
export function unknownName(text: string, cacheFolder: string): string | null {
  if (!SHORT_NAME.test(text) || /\.gguf$/i.test(text)) return null;
  const wanted = lettersOf(text.split(':')[0]!);
  const family = BY_FAMILY.find(([prefix]) => wanted.startsWith(prefix));
  const isLike = (id: string) => lettersOf(id).includes(wanted);
  const stored = storedModels(cacheFolder).map(({ id }) => id);
  const alike = stored.filter(isLike).slice(0, MAX_STORED);
  const sentence = `${text}: no such file or folder, and no name of the Hugging Face hub, which is ORG/NAME.`;
  if (alike.length > 0) return `${sentence} Downloaded are ${alike.join(', ')}.`;
  return `${sentence} ${family === undefined ? 'A small one is' : 'One of this family is'} ${family?.[1] ?? SMALLEST}.`;
}

/** Letters and digits of a name: Llama-3 is the same as llama3. */
function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
