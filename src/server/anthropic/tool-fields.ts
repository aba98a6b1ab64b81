import type { ToolRequest } from '../answering/tool-request.js';
import { toolRequest } from '../answering/tool-request.js';
import { type Warn, warnOfTypes } from '../web/warnings.js';
import type { ClientTool, CountTokensRequest, Tool } from './schemas/messages.js';

/**
 * Reads the tools of a request and the choice among them. Tools of types that only Anthropic's models know are left
 * out with a warning. @throws ApiError in the words of chat.
 */
export function chosenTools(
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
export function keptPlaces({ tools = [] }: Pick<CountTokensRequest, 'tools'>): string[] {
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
