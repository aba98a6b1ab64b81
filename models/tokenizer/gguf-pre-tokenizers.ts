import { FURTHER_WORDS, SPACES_BY_HALVES } from './linear-patterns.js';
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
/** Letters with case of DeepSeek LLM's pattern. */
const CASED_LETTERS =
  'A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-' +
  '\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-' +
  '\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf' +
  '\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-' +
  '\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc' +
  '\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115' +
  '\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e' +
  '\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-' +
  '\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a' +
  '\u{10400}-\u{1044f}\u{104b0}-\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}' +
  '\u{118a0}-\u{118df}\u{1e900}-\u{1e943}';
const DEEPSEEK_LLM = [
  '[\\r\\n]',
  `\\s?[${CASED_LETTERS}]+`,
  '\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+',
  '(?<!\\s)\\s+$',
  '[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+',
  '\\p{N}+',
];
/** As DeepSeek V3 with single digits, and lines that end for themselves. */
const SPARK = [
  ...DEEPSEEK_V3.slice(0, 2),
  '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|' +
    ' ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+',
  '\\p{N}',
];
const YOUTU = [
  '[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|' +
    '[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+',
  `${CASED(`(?:${CONTRACTIONS})?`)}|\\p{N}|${CASED_SYMBOLS}|${SPACES}`,
];
const BLOOM = ' ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+';
const BAILING = `'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|${WORDS}|\\p{N}|${SYMBOLS}|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+`;
const SEED_CODER = `(?:${CONTRACTIONS})|${WORDS}|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|${SPACES}`;
/** Words with the single spaces between them: tokens run over several. */
const EXAONE_MOE =
  `(?:${CONTRACTIONS})|[^\\r\\n\\p{L}\\p{N}]?\\p{L}[\\p{L}\\p{M}]*${FURTHER_WORDS}|\\p{N}|` +
  ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+';
/** As Llama 3, but spaces are cut into runs of powers of two. */
const JAIS2 = `(?:${CONTRACTIONS})|${WORDS}|\\p{N}{1,3}|${SYMBOLS}|\\s*[\\r\\n]+|${SPACES_BY_HALVES}`;
/** As GPT-4o, but Chinese characters are words apart; the original is a pattern of tiktoken with intersections of classes. */
const KIMI = (() => {
  const upper = `(?:(?!\\p{Han})${UPPER})`;
  const lower = `(?:(?!\\p{Han})${LOWER})`;
  const [prefix, ending] = ['[^\\r\\n\\p{L}\\p{N}]?', `(?:${CONTRACTIONS})?`];
  return `\\p{Han}+|${prefix}${upper}*${lower}+${ending}|${prefix}${upper}+${lower}*${ending}|\\p{N}{1,3}|${SYMBOLS}|${SPACES}`;
})();
/** Digits in groups of three from the right, as numbers are written. */
const TINY_AYA = ['\\d{1,3}(?=(?:\\d{3})*\\b)', GPT4O];
const SUPERBPE = ['\\p{N}+', '(?=(\\d{3})+(?!\\d))'];
const AFMOE = [
  '\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))',
  '[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fd5\u0e40-\u0e7f' +
    '\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+',
  DEEPSEEK_V3[2]!,
];
const CHAMELEON = [
  '<sentinel:[0-9]+>',
  'IMGIMG[A-I]{1,4}Z',
  '[\\t\\n]|    |  ',
  '\\p{N}',
  '[\\p{P}!-/:-@\\[-`{-~]',
  GPT2,
];
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
    names: [
      ...[
        'gpt-2',
        'phi-2',
        'mpt',
        'olmo',
        'jais',
        'trillion',
        'granite-docling',
        'exaone4',
        'gigachat',
        'a.x-4.0',
      ],
      ...[
        'mellum',
        'modern-bert',
        'roberta-bpe',
        'jina-es',
        'jina-de',
        'jina-v1-en',
        'jina-v2-es',
        'jina-v2-de',
      ],
      'jina-v2-code',
    ],
    patterns: [GPT2],
  },
  {
    names: ['smollm', 'starcoder', 'refact', 'command-r', 'codeshell', 'exaone', 'minerva-7b', 'mellum2'],
    patterns: DIGITS_GPT2,
  },
  {
    names: [
      ...['llama-bpe', 'llama3', 'llama-v3', 'falcon3', 'falcon-h1', 'pixtral', 'midm-2.0', 'lfm2'],
      'jina-v5-nano',
    ],
    patterns: [LLAMA3],
    ignoreMerges: true,
    addBos: true,
  },
  { names: ['dbrx', 'smaug-bpe', 'glm4', 'chatglm-bpe'], patterns: [LLAMA3] },
  { names: ['qwen2'], patterns: [QWEN2], normalizer: { type: 'NFC' } },
  {
    names: ['deepseek-r1-qwen', 'megrez', 'stablelm2', 'hunyuan', 'solar-open', 'grok-2', 'kormo', 'f2llmv2'],
    patterns: [QWEN2],
  },
  { names: ['qwen35'], patterns: [QWEN35] },
  { names: ['tekken'], patterns: [TEKKEN], ignoreMerges: true, addBos: true },
  { names: ['gpt-4o', 'llama4', 'kanana2', 'minimax-m2', 'talkie'], patterns: [GPT4O] },
  { names: ['granite-embed-multi-97m'], patterns: [GPT4O], ignoreMerges: true },
  { names: ['minicpm5'], patterns: ['\\p{N}{1,3}', LLAMA3.replace('{1,3}', '+')], ignoreMerges: true },
  { names: ['laguna'], patterns: ['[^\\n]+|[\\n]+', QWEN2] },
  { names: ['ufakzeka'], patterns: [`${WORDS}|\\p{N}|${SYMBOLS}|${SPACES}`] },
  { names: ['bailingmoe', 'bailingmoe2', 'llada-moe'], patterns: [BAILING] },
  { names: ['seed-coder'], patterns: [SEED_CODER] },
  { names: ['youtu'], patterns: YOUTU, ignoreMerges: true },
  { names: ['bloom', 'gpt3-finnish', 'poro-chat'], patterns: [BLOOM] },
  { names: ['viking'], patterns: [BLOOM, '\\p{N}'] },
  { names: ['deepseek-llm'], patterns: DEEPSEEK_LLM },
  { names: ['spark2_5'], patterns: SPARK },
  { names: ['deepseek-v3', 'hunyuan-dense', 'joyai-llm', 'hy_v4'], patterns: DEEPSEEK_V3 },
  { names: ['deepseek-coder'], patterns: DEEPSEEK_CODER },
  { names: ['falcon'], patterns: FALCON },
  { names: ['exaone-moe'], patterns: [EXAONE_MOE] },
  { names: ['jais-2'], patterns: [JAIS2] },
  // tiktoken takes a word that is a token as it is.
  { names: ['kimi-k2'], patterns: [KIMI], ignoreMerges: true },
  { names: ['tiny_aya', 'cohere2moe'], patterns: TINY_AYA },
  { names: ['superbpe'], patterns: SUPERBPE },
  { names: ['afmoe'], patterns: AFMOE },
  { names: ['chameleon'], patterns: CHAMELEON, addBos: true },
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
