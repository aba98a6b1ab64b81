import { field, says } from '../../../base/named-text.js';
import type { FunctionTool, ToolChoice } from '../../generation/tools/types.js';
import { ApiError } from '../web/errors.js';
import type { ToolFields } from './schemas/tools.js';

/** Tools of a request and the choice among them. */
export interface ToolRequest {
  tools: readonly FunctionTool[];
  toolChoice: ToolChoice;
  parallelToolCalls: boolean | undefined;
  onlyKnownTools: boolean;
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
