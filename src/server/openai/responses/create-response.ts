import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatAsk, type ChatPlan, countPromptTokens, planChat } from '../../../generation/chat-plan.js';
import { ContextLengthError } from '../../../generation/errors.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import type { Caller } from '../../api-keys.js';
import { jsonAnswer } from '../../json-answer.js';
import { keptEventsMemory } from '../../memory-estimates.js';
import type { RequestMemory } from '../../request-memory.js';
import type { LiveRequest } from '../../request-registry.js';
import type { RequestTerms } from '../../request-terms.js';
import { askedBudget } from '../asked-budget.js';
import type { ChoiceRun } from '../choice-run.js';
import { ApiError } from '../errors.js';
import { guideOfRequest } from '../guides.js';
import { plannedRun } from '../planned-run.js';
import type { Exchange } from '../respond.js';
import { collect, respondWithStream } from '../respond.js';
import { findGenerator, type RouteContext } from '../route-context.js';
import type { CommonRequest } from '../schemas/common.js';
import { type InputTokensRequest, LOG_PROBS, type ResponseRequest } from '../schemas/responses.js';
import { chatMaxTokens } from '../text-request.js';
import { toolRequest } from '../tool-request.js';
import { makeInBackground } from './background.js';
import { type Conversation, conversationOf } from './conversation.js';
import { asFunction } from './custom-tools.js';
import { eventsAnswer } from './event-log.js';
import { keptTools, warnOfOthers } from './kept-tools.js';
import { responseJson } from './response-json.js';
import { ResponseMaking } from './response-making.js';
import type { ResponseStore } from './response-store.js';
import { inResponseWords } from './response-words.js';
import { isStrict } from './strict-schema.js';
import { truncated } from './truncation.js';

export type ResponsesContext = RouteContext & {
  responses: ResponseStore;
  /** Opens an account of memory for work that outlives its request. */
  openMemory: (caller: Caller) => RequestMemory;
};

/** Answers POST /v1/responses, whose body its schema has validated. */
export async function createResponse(
  context: ResponsesContext,
  request: ResponseRequest,
  exchange: Exchange,
): Promise<Response> {
  const hasLogProbs = request.include?.includes(LOG_PROBS) ?? false;
  if ((request.top_logprobs ?? 0) > 0 && !hasLogProbs) {
    throw new ApiError(400, `'top_logprobs' needs '${LOG_PROBS}' in 'include'.`, { param: 'top_logprobs' });
  }
  if (request.background && request.store === false) {
    throw new ApiError(400, "'background' needs 'store': else nobody could read the response.", {
      param: 'background',
    });
  }
  const model = findGenerator(context, request.model);
  const store = context.responses.of(exchange.terms.caller);
  const conversation = conversationOf(request, store);
  const { registry, caller, requestId } = exchange.terms;
  const begin = async (live: LiveRequest, terms: RequestTerms) => {
    const plan = await planOf(model, request, conversation);
    const run = await runOf(context, model, { request, plan, hasLogProbs }, terms, live);
    return {
      run,
      making: new ResponseMaking({ model, request, conversation, plan, run, store, hasLogProbs }),
    };
  };
  const answerLater = async (live: LiveRequest) => {
    const memory = context.openMemory(caller);
    try {
      // The request's own values stay until the response is made.
      memory.addAnswer(exchange.terms.memory.bytes);
      const { run, making } = await begin(live, { ...exchange.terms, memory, trace: undefined });
      void makeInBackground({ run, making, memory, logError: exchange.logError });
      if (making.events !== null) return eventsAnswer(making.events, -1, context.eventStream, exchange);
      return jsonAnswer(responseJson(making.snapshot()));
    } catch (error) {
      memory.release();
      throw error;
    }
  };
  const answer = async (live: LiveRequest) => {
    const { run, making } = await begin(live, exchange.terms);
    try {
      if (request.stream) {
        return await respondWithStream(run, making.frameWriter(), context.eventStream, exchange);
      }
      await collect(run, exchange.signal, (_, piece) => making.piece(piece));
    } catch (error) {
      making.forget();
      throw error;
    }
    const response = making.finish();
    return jsonAnswer(response === null ? null : responseJson(response));
  };
  warnOfOthers(request, exchange.warn);
  return inResponseWords(request, () =>
    registry.accept(caller, requestId, request.background ? answerLater : answer),
  );
}

/** Answers POST /v1/responses/input_tokens: how many tokens the prompt of a response would have. */
export function countInputTokens(
  context: ResponsesContext,
  request: InputTokensRequest,
  { terms, warn }: Exchange,
): Promise<Response> {
  warnOfOthers(request, warn);
  return inResponseWords(request, async () => {
    const model = findGenerator(context, request.model);
    const { messages } = conversationOf(request, context.responses.of(terms.caller));
    const input_tokens = await countPromptTokens(model, { ...askOf(request), messages });
    return Response.json({ object: 'response.input_tokens', input_tokens });
  });
}

async function planOf(
  model: ServedGenerator,
  request: ResponseRequest,
  { messages }: Conversation,
): Promise<ChatPlan> {
  const ask = askOf(request);
  const guide = await guideOfRequest(commonOf(request), model.codec);
  const plan = (kept: readonly ChatMessage[]) =>
    planChat(model, { ...ask, messages: kept, guide, ignoreEos: request.ignore_eos });
  if (request.truncation !== 'auto') return plan(messages);
  const kept = await truncated(messages, async (candidate) => {
    const length = (await plan(candidate).catch(tooLong))?.promptTokens.length ?? Number.POSITIVE_INFINITY;
    return length <= model.maxInputLen && length + (request.max_output_tokens ?? 1) <= model.maxSeqLen;
  });
  return plan(kept);
}

/** What a request asks of a chat, beside its messages and the form of its answer. @throws ApiError. */
function askOf(request: InputTokensRequest): Omit<ChatAsk, 'messages'> {
  return {
    ...toolRequest(toolFieldsOfChat(request)),
    addGenerationPrompt: true,
    variables: request.chat_template_kwargs,
    reasoningEffort: request.reasoning?.effort,
  };
}

/** Turns the error of a prompt too long to be encoded into null; throws any other. */
function tooLong(error: unknown): null {
  if (error instanceof ContextLengthError) return null;
  throw error;
}

async function runOf(
  context: ResponsesContext,
  model: ServedGenerator,
  asked: { request: ResponseRequest; plan: ChatPlan; hasLogProbs: boolean },
  terms: RequestTerms,
  live: LiveRequest,
): Promise<ChoiceRun> {
  const { request, plan, hasLogProbs } = asked;
  const maxTokens = chatMaxTokens(model, request.max_output_tokens, plan.promptTokens.length);
  const logProbs = hasLogProbs ? (request.top_logprobs ?? 0) : undefined;
  if (request.background && request.stream) {
    terms.memory.addAnswer(keptEventsMemory(maxTokens, logProbs === undefined ? 0 : 1 + logProbs));
  }
  const budget = askedBudget(request);
  const chat = { request: commonOf(request), plan, promptParam: 'input', maxTokens, logProbs, budget };
  return plannedRun(context, model, chat, terms, live);
}

/** The request with the fields of chat; those that this route lacks are not given. */
function commonOf(request: ResponseRequest): CommonRequest {
  const { stream_options: _, text, ...fields } = request;
  const format = text?.format;
  const common: Partial<CommonRequest> & { response_format?: object | undefined } = {
    ...fields,
    response_format: format?.type === 'json_schema' ? { type: format.type, json_schema: format } : format,
  };
  return common as CommonRequest;
}

/** Tools and the choice among them in the form of chat, with the function in a field of its own. */
function toolFieldsOfChat(request: InputTokensRequest) {
  const { tool_choice: choice, parallel_tool_calls } = request;
  return {
    tools: keptTools(request).map((tool) => {
      if (tool.type === 'custom') return { type: 'function', function: asFunction(tool) };
      const { type, ...fields } = tool;
      return { type, function: { ...fields, strict: isStrict(tool) } };
    }),
    tool_choice: choiceOfChat(choice),
    parallel_tool_calls,
  } as Parameters<typeof toolRequest>[0];
}

function choiceOfChat(choice: ResponseRequest['tool_choice']) {
  if (choice === undefined || typeof choice === 'string') return choice;
  const named = ({ name }: { name: string }) => ({ type: 'function', function: { name } });
  if (choice.type !== 'allowed_tools') return named(choice);
  return { type: choice.type, allowed_tools: { mode: choice.mode, tools: choice.tools.map(named) } };
}
