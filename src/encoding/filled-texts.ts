import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { RowEngine } from './encoder-model.js';

/** What texts are filled up with. */
export interface TextFiller {
  token: number;
  /** Tokens that each text then has. */
  length: number;
}

/**
 * An engine that fills texts up to one length: SigLIP was trained with texts that are all as long, and reads the last token of them, which
 * is one of padding. Usage counts the text's own tokens alone.
 */
export function filledTexts(engine: RowEngine, { token, length }: TextFiller): RowEngine {
  const filled = (sequence: EncoderSequence): EncoderSequence => {
    const tokenIds = new Int32Array(length).fill(token);
    tokenIds.set(sequence.tokenIds);
    return { ...sequence, tokenIds, tokenTypes: null };
  };
  return { encode: (sequences, options) => engine.encode(sequences.map(filled), options) };
}
