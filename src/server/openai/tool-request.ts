import { field, says } from '../../../base/named-text.js';
import type { FunctionTool, ToolChoice } from '../../generation/tools/types.js';
import { ApiError } from './errors.js';
import type { ChatPromptRequest } from './schemas/chat.js';

/** Tools of a request and the choice among them. */
export interface ToolRequest {
  tools: readonly FunctionTool[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean | undefined;
  onlyKnownTools: boolean;
}

type ToolFields = Pick<ChatPromptRequest, 'tools' | 'tool_choice' | 'parallel_tool_calls'>;

/** Reads the tools of a chat, in their newer or older form. @throws ApiError. */
export function chatToolRequest(request: ChatPromptRequest): ToolRequest {
  const { functions, function_call: choice, ...rest } = request;
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

/** Reads tools. @throws ApiError for a choice of an unknown tool. */
export function toolRequest(request: ToolFields): ToolRequest {
  const tools = (request.tools ?? []).map((tool): FunctionTool => tool.function);
  checkNames(tools);
  const { tool_choice: choice = 'auto', parallel_tool_calls: parallelToolCalls } = request;
  const asked = { tools, parallelToolCalls, onlyKnownTools: false };
  if (typeof choice === 'string') {
    if (choice === 'required') needTools(tools);
    return { ...asked, toolChoice: { mode: choice } };
  }
  needTools(tools);
  if (choice.type === 'function') {
    const { name } = choice.function;
    checkIsThere(name, tools, 'tool_choice.function.name');
    return { ...asked, toolChoice: { mode: 'named', name } };
  }
  const { mode, tools: allowed } = choice.allowed_tools;
  const names = new Set(allowed.map((tool) => tool.function.name));
  for (const name of names) checkIsThere(name, tools, 'tool_choice.allowed_tools.tools');
  return {
    ...asked,
    tools: tools.filter(({ name }) => names.has(name)),
    onlyKnownTools: true,
    toolChoice: { mode },
  };
}

function checkNames(tools: readonly FunctionTool[]): void {
  const seen = new Set<string>();
  for (const [i, { name }] of tools.entries()) {
    if (!seen.has(name)) seen.add(name);
    else {
      const param = `tools[${i}].function.name`;
      throw new ApiError(400, says`'${field(param)}' is '${name}', which another tool is called already.`, {
        param,
      });
    }
  }
}

function needTools(tools: readonly FunctionTool[]): void {
  if (tools.length > 0) return;
  throw new ApiError(
    400,
    says`'${field('tool_choice')}' asks for a call, but there are no '${field('tools')}' to call.`,
    { param: 'tool_choice' },
  );
}

function checkIsThere(name: string, tools: readonly FunctionTool[], param: string): void {
  if (tools.some((tool) => tool.name === name)) return;
  const names = tools.map((tool) => `'${tool.name}'`).join(', ');
  throw new ApiError(400, says`'${field(param)}' is '${name}', but the ${field('tools')} are ${names}.`, {
    param,
  });
}
