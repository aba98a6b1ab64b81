import { isObject } from '../../base/option-values.js';
import { SkeinError } from '../../base/skein-error.js';
import { checkConfigShape, checkTokenizerShape, type Refuse } from './tokenizer-shape.js';

/** The parts of Hugging Face's tokenizer.json that Skein reads; all other parts go to the library unchanged. */
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

/** An error for a model's tokenizer that cannot be used, or that was asked for something it cannot do. */
export class TokenizerError extends SkeinError {
  override name = 'TokenizerError';
  override readonly code: `SKEIN_${string}` = 'SKEIN_TOKENIZER';
}

/** Checks the shape of a parsed tokenizer.json and fills in fields that older files leave out. */
export function parseTokenizerJson(value: unknown): TokenizerJson {
  if (!isObject(value)) {
    throw new TokenizerError(`tokenizer.json should be an object, found ${describe(value)}.`);
  }
  checkTokenizerShape(value, refuseIn('tokenizer.json'));
  const json = value as Partial<TokenizerJson>;
  return {
    added_tokens: json.added_tokens ?? [],
    normalizer: json.normalizer ?? null,
    pre_tokenizer: json.pre_tokenizer ?? null,
    post_processor: json.post_processor ?? null,
    decoder: json.decoder ?? null,
    model: json.model!,
  };
}

/** @throws TokenizerError where a field of tokenizer_config.json that is read has a wrong value. */
export function checkTokenizerConfig(value: unknown): void {
  if (!isObject(value)) {
    throw new TokenizerError(`tokenizer_config.json should be an object, found ${describe(value)}.`);
  }
  checkConfigShape(value, refuseIn('tokenizer_config.json'));
}

function refuseIn(file: string): Refuse {
  return (where, expected, found) => {
    const shown = found === undefined ? 'nothing' : (JSON.stringify(found) ?? typeof found).slice(0, 100);
    throw new TokenizerError(`${file}: ${where} should be ${expected}, found ${shown}.`);
  };
}

/** True where @huggingface/tokenizers takes a model for a BPE. */
export function isBpe(model: ModelJson): boolean {
  if (model.type === 'BPE') return true;
  if (model.type === 'WordPiece' || model.type === 'Unigram' || Array.isArray(model.vocab)) return false;
  return ['continuing_subword_prefix', 'unk_token', 'merges'].every((name) => Object.hasOwn(model, name));
}

/** The inner components of a Sequence, or the component itself. */
export function flattenComponents(part: ComponentJson | null): ComponentJson[] {
  if (part === null) return [];
  if (part.type !== 'Sequence') return [part];
  const inner = part.normalizers ?? part.pretokenizers ?? part.processors ?? part.decoders;
  if (!Array.isArray(inner)) return [];
  return inner.flatMap((item) => flattenComponents(item as ComponentJson));
}

function describe(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}
