/** The parts of Hugging Face's tokenizer.json that Skein reads; everything else goes to the library untouched. */
export interface AddedTokenJson {
  id: number;
  content: string;
  special?: boolean;
  normalized?: boolean;
  single_word?: boolean;
  lstrip?: boolean;
  rstrip?: boolean;
}

/** A component of tokenizer.json (normalizer, pre-tokenizer, decoder ...): a type and its own fields. */
export interface ComponentJson {
  type: string;
  [field: string]: unknown;
}

export interface ModelJson {
  type?: string;
  vocab: Record<string, number> | [string, number][];
  merges?: string[] | [string, string][];
  unk_id?: number | null;
  [field: string]: unknown;
}

export interface TokenizerJson {
  added_tokens: AddedTokenJson[];
  normalizer: ComponentJson | null;
  pre_tokenizer: ComponentJson | null;
  post_processor: ComponentJson | null;
  decoder: ComponentJson | null;
  model: ModelJson;
}

/** The model's tokenizer cannot be used, or was asked for something that it cannot do. */
export class TokenizerError extends Error {
  override name = 'TokenizerError';
}

/** Checks the outer shape of a parsed tokenizer.json and fills in what older files leave out. */
export function parseTokenizerJson(value: unknown): TokenizerJson {
  if (!isObject(value)) {
    throw new TokenizerError(`tokenizer.json should be an object, found ${describe(value)}.`);
  }
  const model = value.model;
  if (!isObject(model) || !isObject(model.vocab)) {
    throw new TokenizerError(`tokenizer.json should have model.vocab, found model ${describe(model)}.`);
  }
  const addedTokens = value.added_tokens ?? [];
  if (!Array.isArray(addedTokens) || !addedTokens.every(isAddedToken)) {
    throw new TokenizerError('tokenizer.json: added_tokens should be an array of {id, content}.');
  }
  return {
    added_tokens: addedTokens,
    normalizer: component(value, 'normalizer'),
    pre_tokenizer: component(value, 'pre_tokenizer'),
    post_processor: component(value, 'post_processor'),
    decoder: component(value, 'decoder'),
    model: model as ModelJson,
  };
}

/** The inner components of a Sequence, or the component itself. */
export function flattenComponents(part: ComponentJson | null): ComponentJson[] {
  if (part === null) return [];
  if (part.type !== 'Sequence') return [part];
  const inner = part.normalizers ?? part.pretokenizers ?? part.processors ?? part.decoders;
  if (!Array.isArray(inner)) return [];
  return inner.flatMap((item) => flattenComponents(item as ComponentJson));
}

function component(json: Record<string, unknown>, key: string): ComponentJson | null {
  const value = json[key] ?? null;
  if (value === null || (isObject(value) && typeof value.type === 'string')) {
    return value as ComponentJson | null;
  }
  throw new TokenizerError(
    `tokenizer.json: ${key} should be null or an object with a type, found ${describe(value)}.`,
  );
}

function isAddedToken(value: unknown): value is AddedTokenJson {
  return isObject(value) && Number.isInteger(value.id) && typeof value.content === 'string';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function describe(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}
