import { encodeTexts } from './encode-texts.js';
import type { PromptTokens, TextCodec } from './text-model.js';

/** Tokens that mark the text before and behind the gap, and the gap to fill. */
interface InfillTokens {
  prefix: string;
  suffix: string;
  middle: string;
  /** True where the suffix comes first. */
  isSuffixFirst?: boolean;
}

/** Tokens of infilling in published models. */
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
 * Prompts for filling in the text between each of `prompts` and `suffix`; null where the vocabulary has no tokens for
 * that.
 * @param prompts all texts, encoded with the tokens that the model wants around a text, or all tokens.
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
  // Tokens that the model wants in front of a text, such as a BOS, go in front of the whole.
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
