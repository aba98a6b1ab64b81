import type { TokenizerFiles } from '../../../models/checkpoints/checkpoint.js';

type Files = Pick<TokenizerFiles, 'tokenizerJson' | 'tokenizerConfig'>;

/** Byte-level characters of the 256 bytes, in the order of GPT-2's table. */
export function byteLevelAlphabet(): string[] {
  const characters: string[] = [];
  let shifted = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    characters.push(String.fromCharCode(prints ? byte : shifted++));
  }
  return characters;
}

/**
 * A byte-level BPE: ids 0-255 are the bytes, then a few merges, then added tokens. `<|x|>` can even be spelled by
 * merges, as in vocabularies that were trained over their own special tokens.
 */
export function byteLevelFiles(): Files {
  const merges: [string, string][] = [
    ['h', 'e'],
    ['l', 'l'],
    ['he', 'll'],
    ['hell', 'o'],
    ['Ġ', 'hello'],
    ['<', '|'],
    ['<|', 'x'],
    ['<|x', '|'],
    ['<|x|', '>'],
  ];
  const entries = [...byteLevelAlphabet(), ...merges.map((merge) => merge.join(''))];
  const vocab = Object.fromEntries(entries.map((entry, id) => [entry, id]));
  return {
    tokenizerJson: {
      added_tokens: [
        { id: vocab['<|x|>'], content: '<|x|>', special: true },
        { id: 300, content: '<|end|>', special: true, rstrip: true },
        { id: 301, content: '<tool>', special: false, normalized: false },
        { id: 302, content: '<|x|>long', special: true },
      ],
      normalizer: null,
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
      post_processor: {
        type: 'TemplateProcessing',
        single: [{ SpecialToken: { id: '<|x|>' } }, { Sequence: { id: 'A' } }],
        special_tokens: { '<|x|>': { id: '<|x|>', ids: [vocab['<|x|>']] } },
      },
      decoder: { type: 'ByteLevel' },
      model: { type: 'BPE', vocab, merges },
    },
    tokenizerConfig: { bos_token: '<|x|>', eos_token: { content: '<|end|>' } },
  };
}

/** A SentencePiece-like BPE as Hugging Face converts it: byte fallback, metaspace, a space before the text. */
export function sentencePieceFiles(): Files {
  const pieces = ['<unk>', '<s>', '</s>'];
  for (let byte = 0; byte < 256; byte++)
    pieces.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
  pieces.push('▁', 'h', 'i', 't', 'e', 'r', '<', 's', '>', '/', '▁h', '▁hi', 'th', 'er', '▁▁');
  return {
    tokenizerJson: {
      added_tokens: [
        { id: 0, content: '<unk>', special: true },
        { id: 1, content: '<s>', special: true },
        { id: 2, content: '</s>', special: true },
      ],
      normalizer: {
        type: 'Sequence',
        normalizers: [
          { type: 'Prepend', prepend: '▁' },
          { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
        ],
      },
      pre_tokenizer: null,
      post_processor: {
        type: 'TemplateProcessing',
        single: [{ SpecialToken: { id: '<s>' } }, { Sequence: { id: 'A' } }],
        special_tokens: { '<s>': { id: '<s>', ids: [1] } },
      },
      decoder: {
        type: 'Sequence',
        decoders: [
          { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
      model: {
        type: 'BPE',
        byte_fallback: true,
        fuse_unk: true,
        unk_token: '<unk>',
        vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
        merges: [
          ['▁', 'h'],
          ['▁h', 'i'],
          ['t', 'h'],
          ['e', 'r'],
          ['▁', '▁'],
        ],
      },
    },
    tokenizerConfig: { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' },
  };
}

/** Texts in many scripts, with everything that is cut badly: combining marks, joined emoji, wide planes. */
export const SCRIPTS = [
  'Hello, world! 12345',
  'naïve café — “quotes” … €5',
  'नमस्ते दुनिया',
  'مرحبا بالعالم',
  'שלום עולם',
  'สวัสดีชาวโลก',
  '你好，世界。日本語のテキスト 한국어',
  'e\u0301a\u0308 Z\u0351\u036b\u0343',
  '👨‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪',
  '𝕏 𠀀 \u{10ffff}',
  '\u0000\u0001\t\r\n  \u00a0\u3000\ufeff',
];

/** BERT's kind: lower-cased words cut into the longest known pieces, between [CLS] and [SEP]. */
export function wordPieceFiles(): Files {
  const pieces = [
    '[UNK]',
    '[CLS]',
    '[SEP]',
    'hello',
    'play',
    '##ing',
    '##s',
    ',',
    '[',
    ']',
    'cl',
    'caf',
    '##e',
  ];
  return {
    tokenizerJson: {
      added_tokens: pieces.slice(0, 3).map((content, id) => ({ id, content, special: true })),
      normalizer: {
        type: 'BertNormalizer',
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: null,
        lowercase: true,
      },
      pre_tokenizer: { type: 'BertPreTokenizer' },
      post_processor: { type: 'BertProcessing', sep: ['[SEP]', 2], cls: ['[CLS]', 1] },
      decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
      model: {
        type: 'WordPiece',
        unk_token: '[UNK]',
        continuing_subword_prefix: '##',
        max_input_chars_per_word: 100,
        vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
      },
    },
    tokenizerConfig: { cls_token: '[CLS]', sep_token: '[SEP]', unk_token: '[UNK]' },
  };
}

/** T5's kind: the most likely cut by scores; the scores of its control tokens would make them win. */
export function unigramFiles(): Files {
  const vocab = [
    ['<unk>', 0],
    ['<s>', 0],
    ['</s>', 0],
    ...['▁', '▁hi', 'h', 'i', '<', 's', '>', '/', '▁▁'].map((piece, i) => [piece, -2 - i]),
  ];
  return {
    tokenizerJson: {
      added_tokens: [
        { id: 0, content: '<unk>', special: true },
        { id: 1, content: '<s>', special: true },
        { id: 2, content: '</s>', special: true },
        { id: 12, content: 'HI', special: false, normalized: true },
      ],
      normalizer: { type: 'Lowercase' },
      pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
      post_processor: null,
      decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
      model: { type: 'Unigram', unk_id: 0, vocab, byte_fallback: false },
    },
    tokenizerConfig: { bos_token: '<s>', eos_token: '</s>', unk_token: '<unk>' },
  };
}
