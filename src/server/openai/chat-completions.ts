import { planChat } from '../../generation/chat-plan.js';
import { askedBudget } from '../answering/asked-budget.js';
import { askedServers } from '../answering/asked-servers.js';
import { findGenerator } from '../answering/find-model.js';
import { guideOfRequest } from '../answering/guides.js';
import { plannedRun } from '../answering/planned-run.js';
import { respondWithStream } from '../answering/respond.js';
import { checkPromptLogProbs } from '../answering/seen-chat.js';
import type { AnsweringServices } from '../answering/services.js';
import { chatMaxTokens, choiceCounts, promptLogProbsAsked, topLogProbs } from '../answering/text-request.js';
import type { ToolRequest } from '../answering/tool-request.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import type { LiveRequest } from '../web/request-registry.js';
import { warnOfAll } from '../web/warnings.js';
import { ChatAnswer, type ChatAnswerOptions } from './chat-answer.js';
import { chatAsk, chatLimit, inChatWords, truncatedChat } from './chat-ask.js';
import type { ChatRequest } from './schemas/chat.js';
import { answerServedChat } from './served-chat.js';

/** Answers POST /v1/chat/completions, whose body its schema has validated. */
export async function chatCompletions(
  context: AnsweringServices,
  request: ChatRequest,
  exchange: Exchange,
): Promise<Response> {
  const { registry, caller, requestId } = exchange.terms;
  return inChatWords(request, () =>
    registry.accept(caller, requestId, (live) => answerChat(context, request, exchange, live)),
  );
}

async function answerChat(
  context: AnsweringServices,
  request: ChatRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  checkCombinations(request);
  const model = findGenerator(context, request.model);
  const servers = askedServers(request.tools, context.toolServers);
  if (servers.length > 0) return answerServedChat({ context, model, request, servers }, exchange, live);
  const asked = await chatAsk(context, model, request, exchange);
  checkPromptLogProbs(request, asked);
  const whole = await planChat(model, {
    ...asked,
    guide: await guideOfRequest(request, model.codec, exchange.warn),
    ignoreEos: request.ignore_eos,
  });
  warnOfAll(whole.warnings, exchange.warn);
  const limit = chatLimit(request);
  const promptTokens = truncatedChat(whole.promptTokens, request, model, asked);
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

function callsOf({ tools, toolChoice: { mode } }: ToolRequest): ChatAnswerOptions['calls'] {
  if (tools.length === 0 || mode === 'none') return 'none';
  return mode === 'auto' ? 'possible' : 'forced';
}

function checkCombinations(request: ChatRequest): void {
  if (request.top_logprobs !== undefined && request.top_logprobs > 0 && !request.logprobs) {
    throw new ApiError(400, "'top_logprobs' needs 'logprobs' to be true.", { param: 'top_logprobs' });
  }
  if (request.stream_options !== undefined && !request.stream) {
    throw new ApiError(400, "'stream_options' needs 'stream' to be true.", { param: 'stream_options' });
  }
}
