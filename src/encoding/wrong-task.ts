import type { EncoderHead } from '../../models/encoder-config.js';

/** What a model does, by what its head makes of texts. */
const WORDS: Readonly<Record<EncoderHead['kind'], string>> = {
  embedding: 'an embedding model: it embeds texts, and can score pairs of them by their cosine',
  score: 'a cross-encoder: it scores pairs of texts and embeds none',
  classification: 'a classifier: it gives texts scores of its labels, and neither embeds nor ranks',
};

/** The refusal of a task that is not the model's. */
export function wrongTask({ kind }: EncoderHead): string {
  return `This model is ${WORDS[kind]}.`;
}
