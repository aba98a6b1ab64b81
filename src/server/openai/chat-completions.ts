import { planChat } from '../../generation/chat-plan.js';
import type { LiveRequest } from '../request-registry.js';
import { warnOfAll } from '../warnings.js';
import { askedBudget } from './asked-budget.js';
import { ChatAnswer, type ChatAnswerOptions } from './chat-answer.js';
import { checkFinalMessage, templateMessage } from './chat-messages.js';
import { ApiError } from './errors.js';
import { fieldsOf } from './field-words.js';
import { guideOfRequest } from './guides.js';
import { inOtherWords } from './other-words.js';
import { plannedRun } from './planned-run.js';
import type { Exchange } from './respond.js';
import { respondWithStream } from './respond.js';
import type { RouteContext } from './route-context.js';
import { findGenerator, templateOf } from './route-context.js';
import type { ChatRequest } from './schemas/chat.js';
import {
  chatMaxTokens,
  choiceCounts,
  promptLogProbsAsked,
  tokensAsked,
  topLogProbs,
  truncatedPrompt,
} from './text-request.js';
import { chatToolRequest, type ToolRequest } from './tool-request.js';

/** Answers POST /v1/chat/completions, whose body its schema has validated. */
export async function chatCompletions(
  context: RouteContext,
  request: ChatRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  const answer = () =>
    registry.accept(caller, requestId, (live) => answerChat(context, request, exchange, live));
  return request.functions === undefined ? answer() : inOtherWords(FUNCTION_FIELDS, answer);
}

/** Names of fields of tools, for requests that use functions instead. */
const FUNCTION_FIELDS = fieldsOf('chat', [
  ['tools[].function', 'functions[]'],
  ['tool_choice.function.name', 'function_call.name'],
  ['tool_choice', 'function_call'],
  ['tools', 'functions'],
]);

async function answerChat(
  context: RouteContext,
  request: ChatRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const asked = chatToolRequest(request);
  const template = templateOf(context, request);
  const whole = await planChat(model, {
    ...asked,
    template,
    messages: request.messages.map(templateMessage),
    guide: await guideOfRequest(request, model.codec),
    ignoreEos: request.ignore_eos,
    addSpecialTokens: request.add_special_tokens,
    addGenerationPrompt: request.add_generation_prompt ?? !request.continue_final_message,
    continueFinalMessage: request.continue_final_message ?? false,
    variables: templateVariablesOf(request, template ?? model.codec.templateSource),
    reasoningEffort: request.reasoning_effort,
  });
  warnOfAll(whole.warnings, exchange.warn);
  const limit = request.max_completion_tokens ?? tokensAsked(request);
  const asMuch = limit ?? Math.min(model.defaultMaxTokens, Math.ceil(model.maxSeqLen / 2));
  const promptTokens = truncatedPrompt(whole.promptTokens, request, model, asMuch);
  const plan = { ...whole, promptTokens };
  const top = topLogProbs(model, 'top_logprobs', request.top_logprobs ?? 0);
  const chat = {
    request,
    plan,
    promptParam: 'messages',
    maxTokens: chatMaxTokens(model, limit, promptTokens.length),
    logProbs: request.logprobs ? top : undefined,
    contextLogProbs: promptLogProbsAsked(model, request),
    counts: choiceCounts(request),
    budget: askedBudget(request),
  };
  const run = await plannedRun(context, model, chat, exchange.terms, live);
  const isNamed = asked.toolChoice.mode === 'named';
  const callField = request.functions === undefined ? 'tool_calls' : 'function_call';
  const calls = callsOf(asked);
  const answer = new ChatAnswer({ model, request, plan, run, isNamed, callField, calls });
  if (request.stream) {
    return respondWithStream(run, answer.frameWriter(), context.eventStream, exchange);
  }
  return answer.whole(exchange.signal);
}

/** Variables of the chat template; documents are one of them. */
function templateVariablesOf(
  { chat_template_kwargs: given, documents }: ChatRequest,
  source: string | null | undefined,
) {
  if (documents === undefined) return given;
  if (source !== undefined && !source?.includes('documents')) {
    throw new ApiError(
      400,
      "'documents' is refused: the chat template of this model does not look for them.",
      {
        param: 'documents',
        code: 'unsupported_parameter',
      },
    );
  }
  if (given?.documents === undefined) return { ...given, documents };
  throw new ApiError(400, "'documents' and 'chat_template_kwargs.documents' exclude each other.", {
    param: 'documents',
  });
}

function callsOf({ tools, toolChoice: { mode } }: ToolRequest): ChatAnswerOptions['calls'] {
  if (tools.length === 0 || mode === 'none') return 'none';
  return mode === 'auto' ? 'possible' : 'forced';
}

function checkCombinations(request: ChatRequest): void {
  checkFinalMessage(request, request.messages);
  if (request.top_logprobs !== undefined && request.top_logprobs > 0 && !request.logprobs) {
    throw new ApiError(400, "'top_logprobs' needs 'logprobs' to be true.", { param: 'top_logprobs' });
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}
