import { field, says } from '../../base/named-text.js';
import type { EmbeddingHead } from '../../models/encoder-config.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import type { EncoderInput } from './encoder-codec.js';

/** What texts are for: to ask, to be found, to be classified, grouped or compared with each other. */
export const INPUT_TYPES = ['query', 'document', 'classification', 'clustering', 'similarity'] as const;

export type InputType = (typeof INPUT_TYPES)[number];

/** What texts are for, by Jina's names of tasks. */
export const INPUT_TYPES_OF_TASKS = {
  'retrieval.query': 'query',
  'retrieval.passage': 'document',
  'text-matching': 'similarity',
  classification: 'classification',
  separation: 'clustering',
} as const satisfies Record<string, InputType>;

/** Names that models have for the prompts of a type, the first that there is being taken, as in sentence-transformers. */
const PROMPTS_OF: Readonly<Record<InputType, readonly string[]>> = {
  query: ['query', 'search_query'],
  document: ['document', 'passage', 'corpus', 'search_document'],
  classification: ['classification', 'Classification'],
  clustering: ['clustering', 'Clustering'],
  similarity: ['text-matching', 'similarity', 'STS'],
};

/** Which of the model's prompts is put in front of texts. */
export interface PromptChoice {
  /** Name of a prompt among the model's (prompts of config_sentence_transformers.json). */
  promptName?: string | undefined;
  /** What the texts are for, if promptName is not given: the model's prompt for it, or else its default. */
  inputType?: InputType | undefined;
}

/** Puts the chosen prompt in front of texts; token ids stay as they are. @throws InvalidRequestError for an unknown prompt */
export function withPrompt(
  inputs: readonly EncoderInput[],
  { prompts, defaultPrompt }: EmbeddingHead,
  { promptName, inputType }: PromptChoice,
): readonly EncoderInput[] {
  if (promptName !== undefined && !Object.hasOwn(prompts, promptName)) {
    const known = Object.keys(prompts).join(', ') || 'none';
    throw new InvalidRequestError(
      says`${field('promptName')} is ${JSON.stringify(promptName.slice(0, 100))}; the model's prompts are: ${known}.`,
      'promptName',
    );
  }
  const ofType = inputType && PROMPTS_OF[inputType].find((name) => Object.hasOwn(prompts, name));
  const name = promptName ?? ofType ?? defaultPrompt;
  const prompt = name === null ? '' : prompts[name]!;
  return prompt === '' ? inputs : inputs.map((input) => (typeof input === 'string' ? prompt + input : input));
}
