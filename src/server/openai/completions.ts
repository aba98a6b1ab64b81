import { encodeTexts } from '../../generation/encode-texts.js';
import { infillPrompts } from '../../generation/infill.js';
import { checkTextLength, MAX_UNITS_PER_TOKEN } from '../../generation/text-length.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import type { LiveRequest } from '../request-registry.js';
import { ChoiceRun } from './choice-run.js';
import { CompletionAnswer } from './completion-answer.js';
import { ApiError } from './errors.js';
import { fieldsOf } from './field-words.js';
import { guideOfRequest, guideParamOf } from './guides.js';
import { inOtherWords } from './other-words.js';
import type { Exchange } from './respond.js';
import { respondWithStream } from './respond.js';
import type { RouteContext } from './route-context.js';
import { findGenerator } from './route-context.js';
import type { CompletionRequest } from './schemas/completions.js';
import {
  choiceCounts,
  encodedFields,
  promptLogProbsAsked,
  textRequest,
  tokensAsked,
  topLogProbs,
  truncatedPrompt,
} from './text-request.js';

/** Most tokens where the request names no limit: OpenAI's default for this route. */
const DEFAULT_MAX_TOKENS = 16;

/** Answers POST /v1/completions, whose body its schema has validated. */
export async function completions(
  context: RouteContext,
  request: CompletionRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  return inOtherWords(COMPLETION_FIELDS, () =>
    registry.accept(caller, requestId, (live) => answerCompletion(context, request, exchange, live)),
  );
}

/** This route's names for fields of programs. */
const COMPLETION_FIELDS = fieldsOf('completions');

async function answerCompletion(
  context: RouteContext,
  request: CompletionRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const maxTokens = tokensAsked(request) ?? DEFAULT_MAX_TOKENS;
  const logProbs = topLogProbs(model, 'logprobs', request.logprobs);
  const ofPrompt = promptLogProbsAsked(model, request);
  const echoed = request.echo ? logProbs : undefined;
  const contextLogProbs =
    ofPrompt === undefined && echoed === undefined ? undefined : Math.max(ofPrompt ?? 0, echoed ?? 0);
  const counts = choiceCounts(request, request.prompt.length);
  const whole = await promptTokens(model, request);
  const prompts = whole.map((tokens) => truncatedPrompt(tokens, request, model, maxTokens));
  const encoded = await encodedFields(request, model);
  const guide = await guideOfRequest(request, model.codec);
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
  const run = new ChoiceRun(model, requests, counts, context.observe, exchange.terms, live);
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
  if (request.truncate_prompt_tokens !== undefined && (isInfilled || request.echo)) {
    const other = isInfilled ? 'suffix' : 'echo';
    throw new ApiError(400, `'truncate_prompt_tokens' and '${other}' exclude each other.`, {
      param: 'truncate_prompt_tokens',
    });
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}

/** Tokens of all prompts. They are counted together, since many short texts are as much work as a long one. */
async function promptTokens(
  model: ServedGenerator,
  { prompt: prompts, suffix = '', add_special_tokens: addSpecialTokens = true }: CompletionRequest,
): Promise<PromptTokens[]> {
  checkLengths(model, 'suffix', [suffix]);
  checkLengths(model, 'prompt', prompts);
  if (suffix !== '') return infillTokens(model, prompts, suffix);
  const texts = prompts.filter((prompt) => typeof prompt === 'string');
  if (texts.length === 0) return prompts as number[][];
  return encodeTexts(model.codec, texts, { addSpecialTokens });
}

/** @throws ContextLengthError for prompts that are too long whatever their tokens are. */
function checkLengths(
  { maxInputLen: maxTokens, codec }: ServedGenerator,
  param: string,
  prompts: readonly (string | readonly number[])[],
): void {
  const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  for (const prompt of prompts) {
    if (typeof prompt === 'string') checkTextLength(prompt.length, { maxTokens, unitsPerToken }, param);
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
