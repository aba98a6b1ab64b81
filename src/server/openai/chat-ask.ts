import { carryForm } from '../../../base/written-json.js';
import type { ChatAsk } from '../../generation/chat-plan.js';
import { checkFinalMessage, templateMessage } from '../../generation/messages.js';
import { toldPrompt } from '../../generation/prompt/chat-prompt.js';
import type { PromptTokens } from '../../generation/text-model.js';
import type { ServedGenerator } from '../../serving/served-model.js';
import { isMcp } from '../answering/asked-servers.js';
import { templateOf } from '../answering/find-model.js';
import type { McpTool } from '../answering/schemas/mcp-tools.js';
import { seenChat } from '../answering/seen-chat.js';
import type { AnsweringServices } from '../answering/services.js';
import { tokensAsked, truncatedPrompt } from '../answering/text-request.js';
import { type ToolRequest, toolRequest } from '../answering/tool-request.js';
import { ApiError } from '../web/errors.js';
import type { Exchange } from '../web/exchange.js';
import { fieldsOf } from '../web/field-words.js';
import { inOtherWords } from '../web/other-words.js';
import { warnOfAll } from '../web/warnings.js';
import type { ChatPromptRequest } from './schemas/chat.js';

/** Names of fields of tools, for requests that use functions instead. */
const FUNCTION_FIELDS = fieldsOf('chat', [
  ['tools[].function', 'functions[]'],
  ['tool_choice.function.name', 'function_call.name'],
  ['tool_choice', 'function_call'],
  ['tools', 'functions'],
]);

/** Runs code for a chat, and words errors with the names that the request has for functions. */
export function inChatWords<T>(
  { functions }: Pick<ChatPromptRequest, 'functions'>,
  run: () => Promise<T>,
): Promise<T> {
  return functions === undefined ? run() : inOtherWords(FUNCTION_FIELDS, run);
}

/**
 * The chat that a body asks for, with all that its prompt depends on but the cut of `truncatedChat`: every route that
 * answers, counts or shows one asks here. @throws ApiError, and as seenChat
 */
export async function chatAsk(
  context: Pick<AnsweringServices, 'trustsTemplates' | 'pictureSources'>,
  model: Pick<ServedGenerator, 'codec' | 'sight' | 'whyBlind'>,
  request: ChatPromptRequest,
  exchange: Pick<Exchange, 'signal' | 'terms'>,
): Promise<ChatAsk & ToolRequest> {
  checkFinalMessage(request, request.messages);
  const template = templateOf(context, request);
  return {
    ...chatToolRequest(request),
    ...(await seenChat(context, model, request.messages.map(templateMessage), exchange)),
    template,
    addSpecialTokens: request.add_special_tokens,
    addGenerationPrompt: request.add_generation_prompt ?? !request.continue_final_message,
    continueFinalMessage: request.continue_final_message ?? false,
    variables: templateVariablesOf(request, template ?? model.codec.templateSource),
    reasoningEffort: request.reasoning_effort,
  };
}

/** Most tokens of an answer that a body asks for; undefined: it names no limit. @throws ApiError */
export function chatLimit(request: ChatPromptRequest): number | undefined {
  const { max_completion_tokens: asked } = request;
  const older = tokensAsked(request);
  if (asked !== undefined && older !== undefined && asked !== older) {
    const other = request.max_tokens === undefined ? 'n_predict' : 'max_tokens';
    throw new ApiError(
      400,
      `'max_completion_tokens' is ${asked} and '${other}' is ${older}: they are two names of one limit.`,
      { param: other },
    );
  }
  return asked ?? older;
}

/**
 * The end of a chat's prompt, where the body asks for no more. @param ask the chat, whose pictures cannot be cut @throws ApiError
 */
export function truncatedChat(
  tokens: PromptTokens,
  request: ChatPromptRequest,
  model: ServedGenerator,
  { pictures = [] }: Pick<ChatAsk, 'pictures'>,
): PromptTokens {
  const asMuch = chatLimit(request) ?? Math.min(model.defaultMaxTokens, Math.ceil(model.maxSeqLen / 2));
  const kept = truncatedPrompt(tokens, request, model, asMuch);
  if (kept === tokens || pictures.length === 0) return kept;
  const param = 'truncate_prompt_tokens';
  throw new ApiError(
    400,
    `'${param}' would cut a prompt of ${tokens.length} tokens to ${kept.length}, and one with pictures is not cut: leave out messages.`,
    { param },
  );
}

/** The prompt of a chat that is shown, not answered. @throws as toldPrompt */
export function toldChat(
  context: Pick<AnsweringServices, 'trustsTemplates' | 'pictureSources'>,
  model: ServedGenerator,
  request: ChatPromptRequest,
  exchange: Pick<Exchange, 'signal' | 'terms' | 'warn'>,
): Promise<PromptTokens> {
  return inChatWords(request, async () => {
    const ask = await chatAsk(context, model, request, exchange);
    const { promptTokens, warnings } = await toldPrompt(model, ask);
    warnOfAll(warnings, exchange.warn);
    return truncatedChat(promptTokens, request, model, ask);
  });
}

/** Variables of the chat template; documents are one of them. */
function templateVariablesOf(
  { chat_template_kwargs: given, documents }: ChatPromptRequest,
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
  if (given?.documents === undefined) {
    const variables = { ...given, documents };
    if (given !== undefined) carryForm(given, variables);
    return variables;
  }
  throw new ApiError(400, "'documents' and 'chat_template_kwargs.documents' exclude each other.", {
    param: 'documents',
  });
}

/** Reads the tools of a chat, in their newer or older form. @throws ApiError. */
function chatToolRequest(request: ChatPromptRequest): ToolRequest {
  const { functions, function_call: choice, tools, ...others } = request;
  const rest = { ...others, tools: tools?.map(ofClient) };
  if (functions === undefined || functions.length === 0) {
    if (typeof choice !== 'object') return toolRequest(rest);
    throw new ApiError(400, "'function_call' asks for a call, but there are no 'functions' to call.", {
      param: 'function_call',
    });
  }
  for (const newer of ['tools', 'tool_choice', 'parallel_tool_calls'] as const) {
    if (rest[newer] === undefined) continue;
    throw new ApiError(
      400,
      `'functions' and '${newer}' exclude each other: one is the older form of the other.`,
      {
        param: 'functions',
      },
    );
  }
  const named = typeof choice === 'object' ? ({ type: 'function', function: choice } as const) : choice;
  return toolRequest({
    tools: functions.map((one) => ({ type: 'function', function: { ...one, strict: undefined } })),
    tool_choice: named,
    // An answer of the older form has room for one call.
    parallel_tool_calls: false,
  });
}

/** A tool that the client runs. @throws ApiError for an MCP server, whose tools only an answer asks for */
function ofClient<Tool extends { type: string }>(tool: Tool, index: number): Exclude<Tool, McpTool> {
  if (!isMcp(tool)) return tool as Exclude<Tool, McpTool>;
  const param = `tools[${index}]`;
  const message = `'${param}' is a tool of the type mcp, which is only for requests that are answered.`;
  throw new ApiError(400, message, { param, code: 'unsupported_parameter' });
}
