import type { ChatMessage } from '../../../../models/chat-template.js';
import { toldPrompt } from '../../../generation/prompt/chat-prompt.js';
import { isMcp } from '../../answering/asked-servers.js';
import { findGenerator } from '../../answering/find-model.js';
import { planWithin } from '../../answering/plan-within.js';
import { collect, respondWithStream } from '../../answering/respond.js';
import { seenMessages } from '../../answering/seen-chat.js';
import { jsonAnswer } from '../../web/bodies/json-answer.js';
import { ApiError } from '../../web/errors.js';
import type { Exchange } from '../../web/exchange.js';
import type { LiveRequest } from '../../web/request-registry.js';
import { warnOfAll } from '../../web/warnings.js';
import { type InputTokensRequest, LOG_PROBS, type ResponseRequest } from '../schemas/responses.js';
import { acceptTask, resumable } from './accepted-task.js';
import type { Asked } from './asked-response.js';
import { makeInBackground } from './background.js';
import { begin } from './begin-response.js';
import { chatOf, conversationOf } from './conversation.js';
import { eventsAnswer } from './event-log.js';
import { askOf } from './response-ask.js';
import { responseJson } from './response-json.js';
import { inResponseWords } from './response-words.js';
import { ownStore, type ResponsesContext } from './responses-context.js';
import { maxRetainedTokens } from './retained-items.js';
import { addKnownTools } from './served-answer.js';

/** Answers POST /v1/responses, whose body its schema has validated. @param json the body as it came */
export async function createResponse(
  context: ResponsesContext,
  request: ResponseRequest,
  json: unknown,
  exchange: Exchange,
): Promise<Response> {
  checkTogether(request);
  const model = findGenerator(context, request.model);
  const { registry, caller, requestId } = exchange.terms;
  const own = ownStore(context, exchange.terms);
  const conversation = await conversationOf(request, own, maxRetainedTokens(model), exchange.warn);
  const turn =
    conversation.id === undefined
      ? null
      : await own.conversations.beginTurn(conversation.id, conversation.input);
  const { warn, signal } = exchange;
  const store = own.responses;
  const asked: Asked = { context, model, request, json, conversation, turn, store, warn, signal };
  const answer = request.background ? answerLater : answerNow;
  try {
    return await inResponseWords(conversation.tools, () =>
      registry.accept(caller, requestId, (live) => answer(asked, live, exchange)),
    );
  } catch (error) {
    await turn?.end([]).catch(() => {});
    throw error;
  }
}

/** @throws ApiError for fields that ask for nothing without each other. */
function checkTogether({ top_logprobs, include, background, store }: ResponseRequest): void {
  if ((top_logprobs ?? 0) > 0 && !(include ?? []).includes(LOG_PROBS)) {
    throw new ApiError(400, `'top_logprobs' needs '${LOG_PROBS}' in 'include'.`, { param: 'top_logprobs' });
  }
  if (background && store === false) {
    throw new ApiError(400, "'background' needs 'store': else no client could read the response.", {
      param: 'background',
    });
  }
}

async function answerNow(asked: Asked, live: LiveRequest, exchange: Exchange): Promise<Response> {
  const { context, request } = asked;
  const { run, making } = await begin(asked, live, exchange.terms);
  try {
    if (request.stream)
      return await respondWithStream(run, making.frameWriter(), context.eventStream, exchange);
    await collect(run, exchange.signal, (_, piece) => making.piece(piece));
  } catch (error) {
    making.forget();
    throw error;
  }
  const response = await making.finish();
  return jsonAnswer(response === null ? null : responseJson(response));
}

async function answerLater(asked: Asked, live: LiveRequest, exchange: Exchange): Promise<Response> {
  const { context } = asked;
  const { terms, logError } = exchange;
  const memory = context.openMemory(terms.caller);
  try {
    // The request's own values stay until the response is made.
    memory.addAnswer(terms.memory.bytes);
    // What an MCP server has been asked for cannot be taken back, and would be asked for again elsewhere.
    const isOfOne = context.responses.tasks === null || (asked.request.tools?.some(isMcp) ?? false);
    const ofAll = isOfOne ? asked : resumable(asked);
    const { run, making } = await begin(ofAll, live, {
      ...terms,
      memory,
      tally: undefined,
      trace: undefined,
    });
    const held = ofAll === asked ? null : await acceptTask(ofAll, { run, making }, terms.caller);
    void makeInBackground({ run, making, memory, logError, held });
    if (making.events !== null) return eventsAnswer(making.events, -1, context.eventStream, exchange);
    return jsonAnswer(responseJson(making.snapshot()));
  } catch (error) {
    memory.release();
    throw error;
  }
}

/** Answers POST /v1/responses/input_tokens: how many tokens the prompt of a response would have. */
export async function countInputTokens(
  context: ResponsesContext,
  request: InputTokensRequest,
  exchange: Exchange,
): Promise<Response> {
  const { terms, warn } = exchange;
  const model = findGenerator(context, request.model);
  const conversation = await conversationOf(
    request,
    ownStore(context, terms),
    maxRetainedTokens(model),
    warn,
  );
  return inResponseWords(conversation.tools, async () => {
    addKnownTools(conversation, request.tools, context.toolServers);
    const all = chatOf(conversation, conversation.items);
    const { messages, picturesOf } = await seenMessages(context, model, all, exchange, 'input');
    const ask = askOf(request, conversation.tools);
    const told = (kept: readonly ChatMessage[]) =>
      toldPrompt(model, { ...ask, messages: kept, pictures: picturesOf(kept) });
    const { promptTokens, warnings } = await (request.truncation === 'auto'
      ? planWithin(model, messages, told, request.max_output_tokens ?? 1)
      : told(messages));
    warnOfAll(warnings, warn);
    return Response.json({ object: 'response.input_tokens', input_tokens: promptTokens.length });
  });
}
