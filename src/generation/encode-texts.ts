import type { PromptTokens, TextCodec } from './text-model.js';

/**
 * Encodes several texts, as one piece of work where the codec can. @param addSpecialTokens true for prompts, false for
 * pieces
 */
export async function encodeTexts(
  codec: TextCodec,
  texts: readonly string[],
  { addSpecialTokens, signal }: { addSpecialTokens: boolean; signal?: AbortSignal | undefined },
): Promise<PromptTokens[]> {
  if (codec.encodeTexts !== undefined) return codec.encodeTexts(texts, { addSpecialTokens, signal });
  return Promise.all(
    texts.map((text) =>
      addSpecialTokens ? codec.encodeText(text, signal) : codec.encodePiece(text, signal),
    ),
  );
}
