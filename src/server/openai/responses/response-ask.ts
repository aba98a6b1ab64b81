import type { ChatAsk } from '../../../generation/chat-plan.js';
import type { CommonRequest } from '../../answering/schemas/common.js';
import { toolRequest } from '../../answering/tool-request.js';
import { ApiError } from '../../web/errors.js';
import type { InputTokensRequest, ResponseRequest } from '../schemas/responses.js';
import type { ToolSet } from './tool-set.js';

type AskFields = Pick<
  Partial<InputTokensRequest>,
  'tool_choice' | 'parallel_tool_calls' | 'chat_template_kwargs' | 'reasoning'
>;

type ServedChoice = Extract<ResponseRequest['tool_choice'], { type: 'mcp' }>;

/** What a request asks of a chat, besides its messages and the form of its answer. @throws ApiError. */
export function askOf(request: AskFields, tools: ToolSet): Omit<ChatAsk, 'messages'> {
  return {
    ...toolRequest({
      tools: tools.functions.map((one) => ({ type: 'function', function: one })),
      tool_choice: choiceOfChat(request.tool_choice, tools),
      parallel_tool_calls: request.parallel_tool_calls,
    } as Parameters<typeof toolRequest>[0]),
    addGenerationPrompt: true,
    variables: request.chat_template_kwargs,
    reasoningEffort: request.reasoning?.effort,
  };
}

/** The choice among tools in the form of chat, with the function in a field of its own. */
function choiceOfChat(choice: ResponseRequest['tool_choice'], tools: ToolSet) {
  if (choice === undefined || typeof choice === 'string') return choice;
  const named = ({ name }: { name: string }) => ({
    type: 'function',
    function: { name: tools.chosen(name) },
  });
  if (choice.type === 'mcp') return servedChoice(choice, tools);
  if (choice.type !== 'allowed_tools') return named(choice);
  return { type: choice.type, allowed_tools: { mode: choice.mode, tools: choice.tools.map(named) } };
}

/** The choice of a server's tool, or of any of its tools. @throws ApiError where it has none. */
function servedChoice({ server_label: label, name }: ServedChoice, tools: ToolSet) {
  const names = tools.servedNames(label, name);
  if (names.length === 0) {
    const what = name === undefined ? 'any' : `'${name}'`;
    const message = `'tool_choice' asks for a tool of the MCP server '${label}', but the tools have not ${what} of it.`;
    throw new ApiError(400, message, { param: 'tool_choice' });
  }
  const functions = names.map((one) => ({ type: 'function', function: { name: one } }));
  if (name !== undefined) return functions[0]!;
  return { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: functions } };
}

/** The request with the fields of chat; those that this route lacks are not given. */
export function commonOf(request: ResponseRequest): CommonRequest {
  const { stream_options: _, text, ...fields } = request;
  const format = text?.format;
  const common: Partial<CommonRequest> & { response_format?: object | undefined } = {
    ...fields,
    response_format: format?.type === 'json_schema' ? { type: format.type, json_schema: format } : format,
  };
  return common as CommonRequest;
}
