import { ParameterError } from '../../callbacks/sampling-params.js';
import { RequestError } from '../../callbacks/token-request.js';
import { InvalidRequestError } from './errors.js';

/** What the engine calls a field, by its name in GenerateOptions. The prompt is known to the caller by another name. */
const FIELDS: Readonly<Record<string, string>> = {
  request_output_len: 'maxTokens',
  maxNewTokens: 'maxTokens',
  min_length: 'minTokens',
  minLength: 'minTokens',
  runtime_top_k: 'topK',
  runtime_top_p: 'topP',
  runtime_min_p: 'minP',
  repetition_penalty: 'repetitionPenalty',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  random_seed: 'seed',
  no_repeat_ngram_size: 'noRepeatNgramSize',
  bad_words_list: 'badWords',
  logit_bias_tokens: 'logitBias',
  logit_bias: 'logitBias',
  embedding_bias: 'embeddingBias',
  stop_words_list: 'stopTokens',
  stopWords: 'stopTokens',
  top_log_probs: 'logProbs',
  topLogProbs: 'logProbs',
  top_context_log_probs: 'contextLogProbs',
  topContextLogProbs: 'contextLogProbs',
  return_context_logits: 'returnContextLogits',
  return_generation_logits: 'returnGenerationLogits',
  cache_salt: 'cacheSalt',
  guided_decoding_guide: 'guided',
  guided_decoding_guide_type: 'guided',
  prompt_embedding_table: 'promptEmbeddings',
  promptEmbeddings: 'promptEmbeddings',
  position_ids: 'positionIds',
  positionIds: 'positionIds',
  num_return_sequences: 'n',
  numSequences: 'n',
  beam_width: 'beams',
  time_limit_ms: 'timeLimitMs',
  ...sameName('temperature', 'topK', 'topP', 'minP', 'repetitionPenalty', 'presencePenalty'),
  ...sameName('noRepeatNgramSize', 'badWords', 'logitBias', 'embeddingBias'),
  ...sameName('frequencyPenalty', 'seed', 'priority', 'cacheSalt', 'timeLimitMs'),
};
const PROMPT_FIELDS: ReadonlySet<string> = new Set(['input_ids', 'promptTokens']);

function sameName(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

/**
 * A refusal by the engine in the words of the caller: the field and the message carry the names of GenerateOptions
 * instead of those of tensors. Any other error is returned as it is.
 * @param promptParam the field that held the prompt. @param guideParam the one that said what the answer has to look like.
 */
export function inCallersWords(
  error: unknown,
  promptParam: string | null,
  guideParam: string | null = null,
): unknown {
  if (!(error instanceof RequestError) || !error.isInvalid) return error;
  // A ParameterError names its field first; only the message comes back from the engine's thread.
  const [written] = /^\w*/.exec(error.message)!;
  const field = error.cause instanceof ParameterError ? error.cause.field : written;
  const rest = error.message.slice(written.length);
  if (PROMPT_FIELDS.has(field) && field === written) {
    return new InvalidRequestError(`The prompt${rest}`, promptParam);
  }
  const known = Object.hasOwn(FIELDS, field) ? FIELDS[field]! : null;
  const option = known === 'guided' ? (guideParam ?? known) : known;
  if (option !== null) return new InvalidRequestError(`${option}${rest}`, option);
  if (error.message.startsWith('The guide')) {
    return new InvalidRequestError(error.message, guideParam, 'invalid_guide');
  }
  return new InvalidRequestError(error.message, error.message.startsWith('The prompt') ? promptParam : null);
}
