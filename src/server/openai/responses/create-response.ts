import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatPlan, planChat } from '../../../generation/chat-plan.js';
import { ContextLengthError } from '../../../generation/errors.js';
import type { ServedGenerator } from '../../../serving/served-model.js';
import { jsonAnswer } from '../../json-answer.js';
import type { LiveRequest } from '../../request-registry.js';
import type { RequestTerms } from '../../request-terms.js';
import { ChoiceRun } from '../choice-run.js';
import { ApiError } from '../errors.js';
import { guideOfRequest, guideParamOf } from '../guides.js';
import type { Exchange } from '../respond.js';
import { collect, respondWithStream } from '../respond.js';
import { findGenerator, type RouteContext } from '../route-context.js';
import type { CommonRequest } from '../schemas/common.js';
import { LOG_PROBS, type ResponseRequest } from '../schemas/responses.js';
import { chatMaxTokens, encodedFields, textRequest } from '../text-request.js';
import { toolRequest } from '../tool-request.js';
import { type Conversation, conversationOf } from './conversation.js';
import { responseJson } from './response-json.js';
import { ResponseMaking } from './response-making.js';
import type { ResponseStore } from './response-store.js';
import { inResponseWords } from './response-words.js';
import { isStrict } from './strict-schema.js';
import { truncated } from './truncation.js';

export type ResponsesContext = RouteContext & { responses: ResponseStore };

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
  const model = findGenerator(context, request.model);
  const store = context.responses.of(exchange.terms.caller);
  const conversation = conversationOf(request, store);
  const { registry, caller, requestId } = exchange.terms;
  const answer = async (live: LiveRequest) => {
    const plan = await planOf(model, request, conversation);
    const run = await runOf(context, model, { request, plan, hasLogProbs }, exchange.terms, live);
    const making = new ResponseMaking({ model, request, conversation, plan, run, store, hasLogProbs });
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
  return inResponseWords(() => registry.accept(caller, requestId, answer));
}

async function planOf(
  model: ServedGenerator,
  request: ResponseRequest,
  { messages }: Conversation,
): Promise<ChatPlan> {
  const tools = toolRequest(toolFieldsOfChat(request));
  const guide = await guideOfRequest(commonOf(request), model.codec);
  const plan = (kept: readonly ChatMessage[]) =>
    planChat(model, {
      ...tools,
      messages: kept,
      addGenerationPrompt: true,
      guide,
      ignoreEos: request.ignore_eos,
      variables: request.chat_template_kwargs,
      reasoningEffort: request.reasoning?.effort,
    });
  if (request.truncation !== 'auto') return plan(messages);
  const kept = await truncated(messages, async (candidate) => {
    const length = (await plan(candidate).catch(tooLong))?.promptTokens.length ?? Number.POSITIVE_INFINITY;
    return length <= model.maxInputLen && length + (request.max_output_tokens ?? 1) <= model.maxSeqLen;
  });
  return plan(kept);
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
  const { promptTokens, guide, shownTokens } = plan;
  const common = commonOf(request);
  const choice = textRequest(common, {
    promptTokens,
    promptParam: 'input',
    maxTokens: chatMaxTokens(model, request.max_output_tokens, promptTokens.length),
    encoded: await encodedFields(common, model),
    logProbs: hasLogProbs ? (request.top_logprobs ?? 0) : undefined,
    guide,
    guideParam: guideParamOf(common) ?? 'tools',
    shownTokens,
  });
  return new ChoiceRun(model, [choice], { n: 1, bestOf: 1 }, context.observe, terms, live);
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
function toolFieldsOfChat({ tools, tool_choice: choice, parallel_tool_calls }: ResponseRequest) {
  return {
    tools: tools?.map(({ type, ...tool }) => ({
      type,
      function: { ...tool, strict: isStrict({ type, ...tool }) },
    })),
    tool_choice: choiceOfChat(choice),
    parallel_tool_calls,
  } as Parameters<typeof toolRequest>[0];
}

function choiceOfChat(choice: ResponseRequest['tool_choice']) {
  if (choice === undefined || typeof choice === 'string') return choice;
  const named = ({ name }: { name: string }) => ({ type: 'function', function: { name } });
  if (choice.type === 'function') return named(choice);
  return { type: choice.type, allowed_tools: { mode: choice.mode, tools: choice.tools.map(named) } };
}
