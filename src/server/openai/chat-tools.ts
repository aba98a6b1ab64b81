import { type ToolRequest, toolRequest } from '../answering/tool-request.js';
import { ApiError } from '../web/errors.js';
import type { ChatPromptRequest } from './schemas/chat.js';

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
