import { NAMED_PARAMETERS } from '../callbacks/request/parameters.js';

/** Routes that take requests for text, with different names for some fields. */
export type TextRoute = 'chat' | 'completions' | 'responses' | 'messages';

/** One thing that a request can ask for, with all its names. */
interface Term {
  /** Name in GenerateOptions and SeveralOptions. */
  option: string;
  /** Names of the request's tensors that carry it, and of its TokenRequest field. */
  inputs: readonly string[];
  /** Name of the API's field; default: the option in snake case. */
  field?: string;
  /** Names on routes that differ. */
  routes?: Partial<Record<TextRoute, string>>;
  /** Flag of commands that ask a model. */
  flag?: string;
}

/**
 * What a request can ask for: from tensors to options of programs, fields of each route and flags of the command line,
 * and back. It has the parameters of PARAMETERS, but no prompt and no guide, which each caller names.
 */
export const REQUEST_VOCABULARY: readonly Term[] = [
  {
    option: 'maxTokens',
    inputs: ['request_output_len', 'maxNewTokens'],
    routes: { responses: 'max_output_tokens' },
    flag: 'max-tokens',
  },
  ...NAMED_PARAMETERS.map(
    ({ name, option, field, tensor, flag }): Term => ({
      option,
      inputs: tensor === name ? [name] : [tensor, name],
      field,
      ...(flag === null ? {} : { flag }),
    }),
  ),
  { option: 'dryBreakers', inputs: ['dry_sequence_breakers', 'dryBreakers'], field: 'dry_sequence_breakers' },
  { option: 'allowedTokens', inputs: ['allowed_token_ids', 'allowedTokens'], field: 'allowed_token_ids' },
  {
    option: 'reasoningBudget',
    inputs: ['reasoning_budget', 'reasoningBudget'],
    field: 'thinking_token_budget',
  },
  { option: 'badWords', inputs: ['bad_words_list', 'badWords'] },
  { option: 'logitBias', inputs: ['logit_bias_tokens', 'logit_bias', 'logitBias'] },
  { option: 'embeddingBias', inputs: ['embedding_bias', 'embeddingBias'] },
  { option: 'stop', inputs: [], routes: { messages: 'stop_sequences' }, flag: 'stop' },
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

/** The program's option for a tensor; null where there is none. */
export function optionOfInput(name: string): string | null {
  return BY_INPUT.get(name)?.option ?? null;
}

/** The route's field for a program's option; other names are returned as they are. */
export function fieldOfOption(option: string, route: TextRoute = 'chat'): string {
  const term = BY_OPTION.get(option);
  if (term === undefined) return option;
  return term.routes?.[route] ?? term.field ?? inSnakeCase(option);
}

/** The program's option for a route's field; null where there is none. */
export function optionOfField(field: string, route: TextRoute = 'chat'): string | null {
  return REQUEST_VOCABULARY.find(({ option }) => fieldOfOption(option, route) === field)?.option ?? null;
}

/** The API's field for a flag of the command line. @throws Error for an unknown flag */
export function fieldOfFlag(flag: string): string {
  const term = REQUEST_VOCABULARY.find((one) => one.flag === flag);
  if (term === undefined) throw new Error(`There is no flag --${flag} in the vocabulary of requests.`);
  return fieldOfOption(term.option);
}

function inSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
