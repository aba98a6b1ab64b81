/** Routes that take requests for text, which differ in what they call some fields. */
export type TextRoute = 'chat' | 'completions' | 'responses';

/** One thing that a request can ask for, and all that it is called. */
interface Term {
  /** In GenerateOptions and SeveralOptions. */
  option: string;
  /** The tensors of a request that carry it, and what a TokenRequest calls it. */
  inputs: readonly string[];
  /** The field of the server's API; default: the option in snake case. */
  field?: string;
  /** Routes that call it otherwise. */
  routes?: Partial<Record<TextRoute, string>>;
  /** The flag of commands that ask a model. */
  flag?: string;
}

/**
 * The one table of what can be asked for: from a request's tensor to the option of a program, the field of each route and the flag of
 * the command line, and back. The prompt and the guide are not in it: what they are called is the caller's choice.
 */
export const REQUEST_VOCABULARY: readonly Term[] = [
  {
    option: 'maxTokens',
    inputs: ['request_output_len', 'maxNewTokens'],
    routes: { responses: 'max_output_tokens' },
    flag: 'max-tokens',
  },
  { option: 'minTokens', inputs: ['min_length', 'minLength'] },
  { option: 'temperature', inputs: ['temperature'], flag: 'temperature' },
  { option: 'topK', inputs: ['runtime_top_k', 'topK'], flag: 'top-k' },
  { option: 'topP', inputs: ['runtime_top_p', 'topP'], flag: 'top-p' },
  { option: 'minP', inputs: ['runtime_min_p', 'minP'], flag: 'min-p' },
  {
    option: 'repetitionPenalty',
    inputs: ['repetition_penalty', 'repetitionPenalty'],
    flag: 'repetition-penalty',
  },
  { option: 'presencePenalty', inputs: ['presence_penalty', 'presencePenalty'], flag: 'presence-penalty' },
  {
    option: 'frequencyPenalty',
    inputs: ['frequency_penalty', 'frequencyPenalty'],
    flag: 'frequency-penalty',
  },
  { option: 'seed', inputs: ['random_seed', 'seed'], flag: 'seed' },
  { option: 'noRepeatNgramSize', inputs: ['no_repeat_ngram_size', 'noRepeatNgramSize'] },
  { option: 'badWords', inputs: ['bad_words_list', 'badWords'] },
  { option: 'logitBias', inputs: ['logit_bias_tokens', 'logit_bias', 'logitBias'] },
  { option: 'embeddingBias', inputs: ['embedding_bias', 'embeddingBias'] },
  { option: 'stop', inputs: [], flag: 'stop' },
  { option: 'stopTokens', inputs: ['stop_words_list', 'stopWords'], field: 'stop_token_ids' },
  { option: 'includeStop', inputs: [], field: 'include_stop_str_in_output' },
  {
    option: 'logProbs',
    inputs: ['top_log_probs', 'topLogProbs'],
    field: 'top_logprobs',
    routes: { completions: 'logprobs' },
  },
  {
    option: 'contextLogProbs',
    inputs: ['top_context_log_probs', 'topContextLogProbs'],
    field: 'prompt_logprobs',
  },
  { option: 'returnContextLogits', inputs: ['return_context_logits'] },
  { option: 'returnGenerationLogits', inputs: ['return_generation_logits'] },
  { option: 'promptEmbeddings', inputs: ['prompt_embedding_table', 'promptEmbeddings'] },
  { option: 'positionIds', inputs: ['position_ids', 'positionIds'] },
  { option: 'n', inputs: ['num_return_sequences', 'numSequences'] },
  { option: 'bestOf', inputs: ['best_of'] },
  { option: 'beams', inputs: ['beam_width'], field: 'best_of' },
  { option: 'priority', inputs: ['priority'] },
  { option: 'cacheSalt', inputs: ['cache_salt', 'cacheSalt'] },
  { option: 'timeLimitMs', inputs: ['time_limit_ms', 'timeLimitMs'] },
  { option: 'truncatePromptTokens', inputs: [] },
];

const BY_INPUT = new Map(REQUEST_VOCABULARY.flatMap((term) => term.inputs.map((name) => [name, term])));
const BY_OPTION = new Map(REQUEST_VOCABULARY.map((term) => [term.option, term]));

/** The option of a program that a tensor carries; null where none does. */
export function optionOfInput(name: string): string | null {
  return BY_INPUT.get(name)?.option ?? null;
}

/** What a route calls an option of a program, or a name that is none, which stays. */
export function fieldOfOption(option: string, route: TextRoute = 'chat'): string {
  const term = BY_OPTION.get(option);
  if (term === undefined) return option;
  return term.routes?.[route] ?? term.field ?? inSnakeCase(option);
}

/** The option of a program behind a route's field; null where it is another thing. */
export function optionOfField(field: string, route: TextRoute = 'chat'): string | null {
  return REQUEST_VOCABULARY.find(({ option }) => fieldOfOption(option, route) === field)?.option ?? null;
}

/** What the server calls what a flag of the command line asks for. @throws Error where there is no such flag */
export function fieldOfFlag(flag: string): string {
  const term = REQUEST_VOCABULARY.find((one) => one.flag === flag);
  if (term === undefined) throw new Error(`There is no flag --${flag} in the vocabulary of requests.`);
  return fieldOfOption(term.option);
}

function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
