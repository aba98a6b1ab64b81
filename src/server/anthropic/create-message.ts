import { type ChatAsk, planChat } from '../../generation/chat-plan.js';
import { toldPrompt } from '../../generation/prompt/chat-prompt.js';
import type { AskedBudget } from '../../generation/reasoning/reasoning-budget.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { findGenerator } from '../answering/find-model.js';
import { guideOfRequest } from '../answering/guides.js';
import { plannedRun } from '../answering/planned-run.js';
import { collect, respondWithStream } from '../answering/respond.js';
import type { CommonRequest } from '../answering/schemas/common.js';
import { seenChat } from '../answering/seen-chat.js';
import type { AnsweringServices } from '../answering/services.js';
import { chatMaxTokens } from '../answering/text-request.js';
import { type ToolRequest, toolRequest } from '../answering/tool-request.js';
import { jsonAnswer } from '../web/bodies/json-answer.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf, withPlaces } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import type { LiveRequest } from '../web/request-registry.js';
import { type Warn, warnOfAll, warnOfTypes } from '../web/warnings.js';
import { conversationOf } from './conversation.js';
import { MessageMaking } from './message-making.js';
import type { ClientTool, CountTokensRequest, MessageRequest, Tool } from './schemas/messages.js';

/** Answers POST /v1/messages, whose body its schema has validated. */
export async function createMessage(
  context: AnsweringServices,
  request: MessageRequest,
  exchange: Exchange,
): Promise<Response> {
  checkThread(request);
  const { registry, caller, requestId } = exchange.terms;
  return inMessageWords(request, () =>
    registry.accept(caller, requestId, (live) => answerMessage(context, request, exchange, live)),
  );
}

/**
 * Conversations are not kept: a request that continues one is refused as for a lost conversation.
 * @throws ApiError 404
 */
function checkThread({ thread }: MessageRequest): void {
  if (thread?.type !== 'continue') return;
  throw new ApiError(
    404,
    `The thread of the message '${thread.previous_message_id}' is not kept: this server keeps no threads; send the whole conversation.`,
    { param: 'thread', code: 'thread_not_found' },
  );
}

/** Answers POST /v1/messages/count_tokens. */
export function countTokens(
  context: AnsweringServices,
  request: CountTokensRequest,
  exchange: Exchange,
): Promise<Response> {
  return inMessageWords(request, async () => {
    const model = findGenerator(context, request.model);
    const ask = await askedChat(context, model, request, exchange);
    const { promptTokens, warnings } = await toldPrompt(model, ask);
    warnOfAll(warnings, exchange.warn);
    return Response.json({ input_tokens: promptTokens.length });
  });
}

async function answerMessage(
  context: AnsweringServices,
  request: MessageRequest,
  exchange: Exchange,
  live: LiveRequest,
): Promise<Response> {
  const model = findGenerator(context, request.model);
  const common = commonOf(request);
  const guide = await guideOfRequest(common, model.codec, exchange.warn);
  const plan = await planChat(model, {
    ...(await askedChat(context, model, request, exchange)),
    guide,
    ignoreEos: request.ignore_eos,
  });
  warnOfAll(plan.warnings, exchange.warn);
  const room = Math.max(1, model.maxSeqLen - plan.promptTokens.length);
  const isCutByContext = request.max_tokens > room;
  const maxTokens = chatMaxTokens(model, Math.min(request.max_tokens, room), plan.promptTokens.length);
  const { thinking } = request;
  const budget = budgetOf(thinking, exchange.warn);
  const chat = { request: common, plan, promptParam: 'messages', maxTokens, budget };
  const run = await plannedRun(context, model, chat, exchange.terms, live);
  const omitsThinking = thinking !== undefined && 'display' in thinking && thinking.display === 'omitted';
  const making = new MessageMaking({ model, plan, run, isCutByContext, omitsThinking });
  if (request.stream) return respondWithStream(run, making.frameWriter(), context.eventStream, exchange);
  await collect(run, exchange.signal, (_, piece) => making.piece(piece));
  return jsonAnswer(making.message());
}

/** The request with the fields of chat; those that this route lacks are not given. */
function commonOf(request: MessageRequest): CommonRequest {
  const { stop_sequences: stop, output_config, output_format, ...fields } = request;
  const format = output_config?.format ?? output_format;
  const common: Partial<CommonRequest> & { response_format?: object | undefined } = {
    ...(fields as Partial<CommonRequest>),
    stop,
    response_format: format && { type: 'json_schema', json_schema: { schema: format.schema } },
  };
  return common as CommonRequest;
}

/** The limit of thinking; undefined: none. Clients send one always, so a model that can have none answers without. */
function budgetOf(thinking: MessageRequest['thinking'], warn: Warn): AskedBudget | undefined {
  const tokens = thinking !== undefined && 'budget_tokens' in thinking ? thinking.budget_tokens : undefined;
  if (tokens == null) return undefined;
  const param = 'thinking.budget_tokens';
  return { tokens, param, onImpossible: (why) => warn(`'${param}' has no effect: ${why}.`) };
}

const FIELDS = fieldsOf('messages', [
  ['tools[].function.parameters', 'tools[].input_schema'],
  ['tools[].function', 'tools[]'],
  ['tool_choice.function.name', 'tool_choice.name'],
  ['response_format', 'output_config.format'],
  ['reasoning_effort', 'output_config.effort'],
]);

/** Runs code shared with chat, and words errors of the request with this route's names. */
function inMessageWords<T>(request: CountTokensRequest, run: () => Promise<T>): Promise<T> {
  return inOtherWords(withPlaces(FIELDS, keptPlaces(request)), run);
}

/** The chat that a request asks for, without the form of its answer. @throws ApiError in the words of chat, and as seenChat */
async function askedChat(
  context: AnsweringServices,
  model: ServedGenerator,
  request: CountTokensRequest,
  exchange: Exchange,
): Promise<ChatAsk> {
  const { messages, continuesLast } = conversationOf(request, context.promptRules, exchange.warn);
  return {
    ...chosenTools(request, exchange.warn),
    ...(await seenChat(context, model, messages, exchange)),
    addGenerationPrompt: !continuesLast,
    continueFinalMessage: continuesLast,
    variables: request.chat_template_kwargs,
    thinks: request.thinking !== undefined && request.thinking.type !== 'disabled',
    reasoningEffort: request.output_config?.effort,
  };
}

/**
 * Reads the tools of a request and the choice among them. Tools of types that only Anthropic's models know are left
 * out with a warning. @throws ApiError in the words of chat.
 */
function chosenTools(
  { tools = [], tool_choice: choice }: Pick<CountTokensRequest, 'tools' | 'tool_choice'>,
  warn: Warn,
): ToolRequest {
  const kept = tools.filter(isClientTool);
  warnOfTypes(
    'Tools',
    tools.filter((tool) => !isClientTool(tool)).map(({ type }) => type),
    warn,
  );
  const isParallel = choice === undefined || choice.type === 'none' || !choice.disable_parallel_tool_use;
  return toolRequest({
    tools: kept.map(({ name, description, input_schema: parameters, strict }) => ({
      type: 'function',
      function: { name, description, parameters, strict },
    })),
    tool_choice: choiceOfChat(choice),
    parallel_tool_calls: isParallel ? undefined : false,
  });
}

/** Paths in the request of the tools that are kept. */
function keptPlaces({ tools = [] }: Pick<CountTokensRequest, 'tools'>): string[] {
  return tools.flatMap((tool, index) => (isClientTool(tool) ? [`tools[${index}]`] : []));
}

function isClientTool(tool: Tool): tool is ClientTool {
  return tool.type === undefined || tool.type === 'custom';
}

function choiceOfChat(choice: CountTokensRequest['tool_choice']) {
  switch (choice?.type) {
    case 'any':
      return 'required';
    case 'tool':
      return { type: 'function', function: { name: choice.name } } as const;
    default:
      return choice?.type;
  }
}
