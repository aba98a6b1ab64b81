import type { TextCodec } from './text-model.js';

/** The tokens between which a model finds what is before and behind the text that it fills in. */
interface InfillTokens {
  prefix: string;
  suffix: string;
  middle: string;
  /** The suffix comes first. */
  isSuffixFirst?: boolean;
}

/** By the names that published models give them. */
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
 * The tokens of a prompt in whose answer the text between `prompt` and `suffix` is filled in; null: the model's vocabulary has
 * no tokens for that.
 * @param prompt text, encoded with what the model wants around a text, or tokens.
 */
export async function infillPrompt(
  codec: TextCodec,
  prompt: string | readonly number[],
  suffix: string,
): Promise<number[] | null> {
  const tokens = await infillTokens(codec);
  if (tokens === null) return null;
  const { prefix, suffix: behind, middle, isSuffixFirst = false } = tokens;
  const pieces = isSuffixFirst ? [behind, suffix, prefix, prompt] : [prefix, prompt, behind, suffix, middle];
  const encoded = await Promise.all(
    pieces.map((piece) => (typeof piece === 'string' ? codec.encodePiece(piece) : piece)),
  );
  // What the model wants in front of a text, such as a BOS, stands in front of the whole.
  const around = typeof prompt === 'string' ? Array.from(await codec.encodeText('')) : [];
  return [...around, ...encoded.flatMap((ids) => [...ids])];
}

async function infillTokens(codec: TextCodec): Promise<InfillTokens | null> {
  for (const tokens of KNOWN) {
    const texts = [tokens.prefix, tokens.suffix, tokens.middle].filter((text) => text !== '');
    const encoded = await Promise.all(texts.map((text) => codec.encodePiece(text)));
    if (encoded.every((ids) => ids.length === 1)) return tokens;
  }
  return null;
}
