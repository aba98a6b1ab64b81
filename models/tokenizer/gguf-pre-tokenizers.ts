import type { ComponentJson } from './tokenizer-json.js';

/**
 * Rules by which a byte-level BPE cuts text into words before it merges. GGUF only names them (tokenizer.ggml.pre);
 * llama.cpp's llama-vocab.cpp, and the tokenizer.json files that the names were made for, define the names.
 */
export interface PreTokenization {
  preTokenizer: ComponentJson;
  normalizer: ComponentJson | null;
  /** True where a whole word in the vocabulary is taken as it is. */
  ignoreMerges: boolean;
  /** True where BOS is added unless the file says otherwise. */
  addBos: boolean;
}

// The original patterns ignore case; the long s folds to s.
const CONTRACTIONS = "'[sS\u017f]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]";
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const WORDS = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const SYMBOLS = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*';
const LLAMA3 = `(?:${CONTRACTIONS})|${WORDS}|\\p{N}{1,3}|${SYMBOLS}|${SPACES}`;
const QWEN2 = `(?:${CONTRACTIONS})|${WORDS}|\\p{N}|${SYMBOLS}|${SPACES}`;
const QWEN35 =
  `(?:${CONTRACTIONS})|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|` +
  ` ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${SPACES}`;
const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
const LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
const CASED = (ending: string) =>
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+${ending}|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*${ending}`;
const CASED_SYMBOLS = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*';
const TEKKEN = `${CASED('')}|\\p{N}|${CASED_SYMBOLS}|${SPACES}`;
const GPT4O = `${CASED(`(?:${CONTRACTIONS})?`)}|\\p{N}{1,3}|${CASED_SYMBOLS}|${SPACES}`;
const DEEPSEEK_V3 = [
  '\\p{N}{1,3}',
  '[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+',
  '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|' +
    ` ?[\\p{P}\\p{S}]+[\\r\\n]*|${SPACES}`,
];
const DEEPSEEK_CODER = [
  '[\\r\\n]',
  '\\s?\\p{L}+',
  '\\s?\\p{P}+',
  '[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+',
  '\\p{N}',
];
const FALCON = ['[\\p{P}\\$\\+<=>\\^~\\|`]+', GPT2, '[0-9][0-9][0-9]'];
const DEFAULT = ['[\\p{P}\\$\\+<=>\\^~\\|]+', GPT2, '\\p{N}+', '[0-9][0-9][0-9]'];
/** Patterns for single digits, then GPT-2's words. */
const DIGITS_GPT2 = ['\\p{N}', GPT2];

interface Family {
  names: string[];
  patterns: string[];
  normalizer?: ComponentJson;
  ignoreMerges?: boolean;
  addBos?: boolean;
}

const FAMILIES: Family[] = [
  { names: ['default'], patterns: DEFAULT },
  {
    names: ['gpt-2', 'phi-2', 'mpt', 'olmo', 'jais', 'trillion', 'granite-docling', 'exaone4'],
    patterns: [GPT2],
  },
  {
    names: ['smollm', 'starcoder', 'refact', 'command-r', 'codeshell', 'exaone', 'minerva-7b', 'mellum2'],
    patterns: DIGITS_GPT2,
  },
  {
    names: ['llama-bpe', 'llama3', 'llama-v3', 'falcon3', 'falcon-h1', 'pixtral', 'midm-2.0', 'lfm2'],
    patterns: [LLAMA3],
    ignoreMerges: true,
    addBos: true,
  },
  { names: ['dbrx', 'smaug-bpe', 'glm4', 'chatglm-bpe'], patterns: [LLAMA3] },
  { names: ['qwen2'], patterns: [QWEN2], normalizer: { type: 'NFC' } },
  {
    names: ['deepseek-r1-qwen', 'megrez', 'stablelm2', 'hunyuan', 'solar-open', 'grok-2'],
    patterns: [QWEN2],
  },
  { names: ['qwen35'], patterns: [QWEN35] },
  { names: ['tekken'], patterns: [TEKKEN], ignoreMerges: true, addBos: true },
  { names: ['gpt-4o', 'llama4', 'kanana2', 'minimax-m2'], patterns: [GPT4O] },
  { names: ['deepseek-v3', 'hunyuan-dense', 'joyai-llm'], patterns: DEEPSEEK_V3 },
  { names: ['deepseek-coder'], patterns: DEEPSEEK_CODER },
  { names: ['falcon'], patterns: FALCON },
];

/** Names that preTokenization knows, in alphabetical order. */
export const knownPreTokenizers: readonly string[] = FAMILIES.flatMap((family) => family.names).sort();

/** Pre-tokenization of a name; null for an unknown one. */
export function preTokenization(name: string): PreTokenization | null {
  const family = FAMILIES.find((candidate) => candidate.names.includes(name));
  if (family === undefined) return null;
  const splits = family.patterns.map((pattern) => ({
    type: 'Split',
    pattern: { Regex: pattern },
    behavior: 'Isolated',
    invert: false,
  }));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    preTokenizer: { type: 'Sequence', pretokenizers: [...splits, byteLevel] },
    normalizer: family.normalizer ?? null,
    ignoreMerges: family.ignoreMerges ?? false,
    addBos: family.addBos ?? false,
  };
}
