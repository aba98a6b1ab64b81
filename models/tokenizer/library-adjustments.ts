import type { ComponentJson, ModelJson, TokenizerJson } from './tokenizer-json.js';

/**
 * Changes a tokenizer.json before @huggingface/tokenizers reads it, so that it tokenizes as Hugging Face's Rust
 * library does. The JavaScript library differs in two places, both repaired by an equal Split:
 *
 * - Digits uses JavaScript's \d (0-9 only); Rust takes every numeric character (\p{N}).
 * - ByteLevel's own pattern uses JavaScript's \s, which has U+FEFF and lacks U+0085. The library translates \s
 *   rightly in the patterns of Split.
 *
 * Special tokens are left out of its added tokens and of what its model can produce: Skein finds them itself, and
 * only in text that may contain them.
 */
export function adjustForLibrary(json: TokenizerJson, specialTexts: ReadonlySet<string>): TokenizerJson {
  return {
    ...json,
    added_tokens: [],
    pre_tokenizer: json.pre_tokenizer && adjustPreTokenizer(json.pre_tokenizer),
    post_processor: null,
    decoder: null,
    model: withoutSpecialTokens(json.model, specialTexts),
  };
}

const GPT2_PATTERN = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

function isolate(pattern: string): ComponentJson {
  return { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false };
}

function adjustPreTokenizer(part: ComponentJson): ComponentJson {
  if (part.type === 'Sequence' && Array.isArray(part.pretokenizers)) {
    return { ...part, pretokenizers: part.pretokenizers.map(adjustPreTokenizer) };
  }
  if (part.type === 'Digits') return isolate(part.individual_digits ? '\\p{N}' : '\\p{N}+');
  // With a prefix space the space must come before the split, which only the library's own ByteLevel does.
  if (part.type === 'ByteLevel' && part.use_regex !== false && part.add_prefix_space !== true) {
    return { type: 'Sequence', pretokenizers: [isolate(GPT2_PATTERN), { ...part, use_regex: false }] };
  }
  return part;
}

/** The model without ways to spell a special token: no merge makes one, and no piece of a Unigram vocabulary is one. */
function withoutSpecialTokens(model: ModelJson, specialTexts: ReadonlySet<string>): ModelJson {
  if (specialTexts.size === 0) return model;
  if (Array.isArray(model.vocab)) {
    // Ids are positions, so the entry stays, with a text that no UTF-8 text contains.
    const vocab = model.vocab.map(([text, score], id): [string, number] =>
      specialTexts.has(text) ? [`\uDC00${id}`, score] : [text, score],
    );
    return { ...model, vocab };
  }
  if (model.merges === undefined) return model;
  let shortest = Number.POSITIVE_INFINITY;
  let longest = 0;
  for (const text of specialTexts) {
    shortest = Math.min(shortest, text.length);
    longest = Math.max(longest, text.length);
  }
  const makesSpecial = (merge: string | [string, string]): boolean => {
    const length = typeof merge === 'string' ? merge.length - 1 : merge[0].length + merge[1].length;
    if (length < shortest || length > longest) return false;
    return specialTexts.has(typeof merge === 'string' ? merge.replace(' ', '') : merge[0] + merge[1]);
  };
  const merges = model.merges as (string | [string, string])[];
  if (!merges.some(makesSpecial)) return model;
  return { ...model, merges: merges.filter((merge) => !makesSpecial(merge)) as string[] };
}
