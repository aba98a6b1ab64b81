import { OFFERED } from './offered-models.js';
import { storedModels } from './stored-models.js';

const SMALLEST = OFFERED[0]!.name;
/** A small model of each family, by the beginning of the names that people give to models of it. */
const FAMILIES = OFFERED.flatMap(({ family, name }) => (family === null ? [] : [{ family, name }]));
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
  const one = FAMILIES.find(({ family }) => wanted.startsWith(family));
  const isLike = (id: string) => lettersOf(id).includes(wanted);
  const stored = storedModels(cacheFolder).map(({ id }) => id);
  const alike = stored.filter(isLike).slice(0, MAX_STORED);
  const sentence = `${text}: no such file or folder, and no name of the Hugging Face hub, which is ORG/NAME.`;
  if (alike.length > 0) return `${sentence} Downloaded are ${alike.join(', ')}.`;
  return `${sentence} ${one === undefined ? 'A small one is' : 'One of this family is'} ${one?.name ?? SMALLEST}.`;
}

/** Letters and digits of a name: Llama-3 is the same as llama3. */
function lettersOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
