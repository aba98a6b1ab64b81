import { encodeTexts } from './encode-texts.js';
import type { PromptTokens, TextCodec } from './text-model.js';

/** The tokens between which a model finds what is before and behind the text that it fills in. */
interface InfillTokens {
  prefix: string;
  suffix: string;
  middle: string;
  /** The suffix comes first. */
  isSuffixFirst?: boolean;
}

/** Tokens of infilling by the names that published models give them. */
const KNOWN: readonly InfillTokens[] = [
  // Qwen coders, CodeGemma.
  { prefix: '<|fim_prefix|>', suffix: '<|fim_suffix|>', middle: '<|fim_middle|>' },
  // StarCoder, Granite, SantaCoder.
  { prefix: '<fim_prefix>', suffix: '<fim_suffix>', middle: '<fim_middle>' },
  { prefix: '<fim-prefix>', suffix: '<fim-suffix>', middle: '<fim-middle>' },
  // DeepSeek coders.
  { prefix: '<｜fim▁begin｜>', suffix: '<｜fim▁hole｜>', middle: '<｜fim▁end｜>' },
  // Codestral.
  { prefix: '[PREFIX]', suffix: '[SUFFIX]', middle: '', isSuffixFirst: true },
];

/**
 * The tokens of prompts in whose answers the text between each of `prompts` and `suffix` is filled in; null: the model's
 * vocabulary has no tokens for that.
 * @param prompts all of them texts, encoded with what the model wants around a text, or all of them tokens.
 */
export async function infillPrompts(
  codec: TextCodec,
  prompts: readonly (string | readonly number[])[],
  suffix: string,
): Promise<number[][] | null> {
  const marks = await infillTokens(codec);
  if (marks === null) return null;
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  const { prefix, suffix: behind, middle, isSuffixFirst = false } = marks;
  const pieces = [prefix, behind, middle, suffix, ...texts];
  const [beforePrefix, beforeSuffix, beforeMiddle, ofSuffix, ...ofTexts] = await encodeTexts(codec, pieces, {
    addSpecialTokens: false,
  });
  // What the model wants in front of a text, such as a BOS, stands in front of the whole.
  const around = texts.length > 0 ? await codec.encodeText('') : [];
  const ofPrompts: readonly PromptTokens[] = texts.length > 0 ? ofTexts : (prompts as readonly number[][]);
  return ofPrompts.map((prompt) => {
    const parts = isSuffixFirst
      ? [around, beforeSuffix!, ofSuffix!, beforePrefix!, prompt]
      : [around, beforePrefix!, prompt, beforeSuffix!, ofSuffix!, beforeMiddle!];
    return parts.flatMap((ids) => Array.from(ids));
  });
}

async function infillTokens(codec: TextCodec): Promise<InfillTokens | null> {
  for (const tokens of KNOWN) {
    const texts = [tokens.prefix, tokens.suffix, tokens.middle].filter((text) => text !== '');
    const encoded = await Promise.all(texts.map((text) => codec.encodePiece(text)));
    if (encoded.every((ids) => ids.length === 1)) return tokens;
  }
  return null;
}
