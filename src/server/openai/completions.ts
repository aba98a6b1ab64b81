import { encodeTexts } from '../../generation/encode-texts.js';
import { infillPrompts } from '../../generation/infill.js';
import { checkTextLength, promptLimit } from '../../generation/text-length.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { ChoiceRun } from '../answering/choice-run.js';
import { findGenerator } from '../answering/find-model.js';
import { guideOfRequest, guideParamOf } from '../answering/guides.js';
import { respondWithStream } from '../answering/respond.js';
import type { AnsweringServices } from '../answering/services.js';
import {
  choiceCounts,
  encodedFields,
  promptLogProbsAsked,
  textRequest,
  tokensAsked,
  topLogProbs,
  truncatedPrompt,
} from '../answering/text-request.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { LiveRequest } from '../web/request-registry.js';
import { CompletionAnswer } from './completion-answer.js';
import type { CompletionRequest } from './schemas/completions.js';

/** Most tokens where the request names no limit: OpenAI's default for this route. */
const DEFAULT_MAX_TOKENS = 16;

/** Answers POST /v1/completions, whose body its schema has validated. */
export async function completions(
  context: AnsweringServices,
  request: CompletionRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  return inCompletionWords(() =>
    registry.accept(caller, requestId, (live) => answerCompletion(context, request, exchange, live)),
  );
}

/** This route's names for fields of programs. */
const COMPLETION_FIELDS = fieldsOf('completions');

/** Runs code for a completion, and words errors with this route's names. */
export function inCompletionWords<T>(run: () => Promise<T>): Promise<T> {
  return inOtherWords(COMPLETION_FIELDS, run);
}

/** Most tokens of an answer. @throws ApiError */
export function completionLimit(request: Parameters<typeof tokensAsked>[0]): number {
  return tokensAsked(request) ?? DEFAULT_MAX_TOKENS;
}

async function answerCompletion(
  context: AnsweringServices,
  request: CompletionRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const maxTokens = completionLimit(request);
  const logProbs = topLogProbs(model, 'logprobs', request.logprobs);
  const ofPrompt = promptLogProbsAsked(model, request);
  const echoed = request.echo ? logProbs : undefined;
  const contextLogProbs =
    ofPrompt === undefined && echoed === undefined ? undefined : Math.max(ofPrompt ?? 0, echoed ?? 0);
  const counts = choiceCounts(request, request.prompt.length);
  const prompts = await completionPrompts(model, request);
  const encoded = await encodedFields(request, model);
  const guide = await guideOfRequest(request, model.codec, exchange.warn);
  const requests = prompts.map((promptTokens) =>
    textRequest(request, {
      promptTokens,
      promptParam: 'prompt',
      maxTokens,
      encoded,
      logProbs,
      contextLogProbs,
      guide,
      guideParam: guideParamOf(request),
    }),
  );
  const run = await ChoiceRun.start(model, requests, counts, context.observe, exchange.terms, live);
  const answer = new CompletionAnswer(model, request, prompts, run);
  if (request.stream) {
    return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  }
  return answer.whole(exchange.signal);
}

function checkCombinations(request: CompletionRequest): void {
  if (tokensAsked(request) === 0 && !request.echo) {
    const param = request.max_tokens === 0 ? 'max_tokens' : 'n_predict';
    throw new ApiError(400, `'${param}' is 0, which needs 'echo': there would be nothing to answer.`, {
      param,
    });
  }
  const isInfilled = (request.suffix ?? '') !== '';
  if (
    isInfilled &&
    (request.prompt_logprobs !== undefined || (request.echo && request.logprobs !== undefined))
  ) {
    throw new ApiError(
      400,
      "'suffix' excludes log-probs of the prompt: the model sees both in another order.",
      {
        param: 'suffix',
      },
    );
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}

/**
 * Tokens of all prompts, for every route that answers or shows them.
 * @param most UTF-16 units of a text that may be longer than the model takes. Default: none may
 * @throws ApiError, ContextLengthError
 */
export async function completionPrompts(
  model: ServedGenerator,
  request: CompletionRequest,
  most: { maxUnits: number } = { maxUnits: 0 },
): Promise<PromptTokens[]> {
  const isInfilled = (request.suffix ?? '') !== '';
  if (request.truncate_prompt_tokens !== undefined && (isInfilled || request.echo)) {
    const other = isInfilled ? 'suffix' : 'echo';
    throw new ApiError(400, `'truncate_prompt_tokens' and '${other}' exclude each other.`, {
      param: 'truncate_prompt_tokens',
    });
  }
  const whole = await promptTokens(model, request, most.maxUnits);
  return whole.map((tokens) => truncatedPrompt(tokens, request, model, completionLimit(request)));
}

/** Tokens of all prompts. They are counted together, since many short texts are as much work as a long one. */
async function promptTokens(
  model: ServedGenerator,
  { prompt: prompts, suffix = '', add_special_tokens: addSpecialTokens = true }: CompletionRequest,
  maxUnits: number,
): Promise<PromptTokens[]> {
  checkLengths(model, 'suffix', [suffix], maxUnits);
  checkLengths(model, 'prompt', prompts, maxUnits);
  if (suffix !== '') return infillTokens(model, prompts, suffix);
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  if (texts.length === 0) return prompts as number[][];
  return encodeTexts(model.codec, texts, { addSpecialTokens });
}

/** @throws ContextLengthError for prompts that are too long whatever their tokens are. */
function checkLengths(
  model: ServedGenerator,
  param: string,
  prompts: readonly (string | readonly number[])[],
  maxUnits: number,
): void {
  for (const prompt of prompts) {
    const isLong = typeof prompt === 'string' && prompt.length > maxUnits;
    if (isLong) checkTextLength(prompt.length, promptLimit(model), param);
  }
}

async function infillTokens(
  model: ServedGenerator,
  prompts: readonly (string | readonly number[])[],
  suffix: string,
): Promise<PromptTokens[]> {
  const tokens = await infillPrompts(model.codec, prompts, suffix);
  if (tokens !== null) return tokens;
  throw new ApiError(
    400,
    `'suffix' is not supported by the model '${model.id}': its vocabulary has no tokens for text to be filled in between.`,
    { param: 'suffix', code: 'unsupported_parameter' },
  );
}
