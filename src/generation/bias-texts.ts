import { InvalidRequestError } from '../errors/request-errors.js';
import { encodeTexts } from './encode-texts.js';
import type { TextCodec } from './text-model.js';

/** Biases of tokens, and of texts: each token of a text gets the text's bias. */
export interface GivenBias {
  byToken: ReadonlyMap<number, number>;
  byText: readonly (readonly [text: string, bias: number])[];
}

/**
 * Biases by token id; of several biases of a token the last holds, and those of texts come after those of
 * ids.
 */
export async function biasByToken(
  codec: TextCodec,
  { byToken, byText }: GivenBias,
): Promise<ReadonlyMap<number, number>> {
  if (byText.length === 0) return byToken;
  const texts = byText.map(([text]) => text);
  const encoded = await encodeTexts(codec, texts, { addSpecialTokens: false });
  const biases = new Map(byToken);
  for (const [i, [text, bias]] of byText.entries()) {
    if (encoded[i]!.length === 0)
      throw new InvalidRequestError(`The text ${JSON.stringify(text)} has no tokens.`, 'logitBias');
    for (const token of encoded[i]!) biases.set(token, bias);
  }
  return biases;
}
