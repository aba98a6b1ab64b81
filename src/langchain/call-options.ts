import type { BindToolsInput, ToolChoice } from '@langchain/core/language_models/chat_models';
import type { BaseMessage } from '@langchain/core/messages';
import { convertToOpenAITool } from '@langchain/core/utils/function_calling';
import { InvalidRequestError } from '../errors/request-errors.js';
import type { FunctionTool } from '../generation/tools/types.js';
import type { GenerateOptions } from '../library/answers.js';
import type { ChatSettings } from '../library/chat/chat-types.js';
import { given } from '../library/foreign-content.js';
import { messagesOf } from './prompt-messages.js';

/** Options of an answer by Skein's names: `temperature`, `maxTokens`, `seed`, `guided`, `adapter`, ... */
export type SkeinSettings = ChatSettings;

/** What LangChain gives a call. */
export interface AskedCall {
  stop?: readonly string[] | undefined;
  signal?: AbortSignal | undefined;
  tools?: readonly BindToolsInput[] | undefined;
  tool_choice?: ToolChoice | undefined;
  /** Options of this call by Skein's names. */
  skein?: SkeinSettings | undefined;
}

/** Options of Skein for a call of LangChain. @throws InvalidRequestError as messagesOf, and for tools and choices of other forms */
export function generateOptions(
  messages: readonly BaseMessage[],
  settings: SkeinSettings,
  { stop, signal, tools = [], tool_choice: choice, skein = {} }: AskedCall,
): GenerateOptions {
  return {
    ...settings,
    ...skein,
    ...given({ stop: stop?.length ? stop : undefined, signal }),
    messages: messagesOf(messages),
    // With a list of tools, an empty one too, reasoning is separated from the answer.
    tools: tools.map(functionOf),
    ...given({ toolChoice: tools.length === 0 ? undefined : choiceOf(choice) }),
  };
}

function functionOf(tool: BindToolsInput): FunctionTool {
  const { type, function: described } = convertToOpenAITool(
    tool as Parameters<typeof convertToOpenAITool>[0],
  );
  if (type !== 'function' || typeof described?.name !== 'string')
    throw new InvalidRequestError(
      'A tool is none of LangChain and no {"type": "function", "function": {"name": ...}}.',
      'tools',
    );
  return described as FunctionTool;
}

function choiceOf(choice: ToolChoice | undefined): GenerateOptions['toolChoice'] {
  if (choice === undefined || choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  if (choice === 'any') return 'required';
  if (typeof choice === 'string') return { name: choice };
  const { name } = (choice.function ?? {}) as { name?: unknown };
  if (typeof name === 'string') return { name };
  throw new InvalidRequestError(
    'tool_choice must be "auto", "any", "none", the name of a tool, or {"type": "function", "function": {"name": ...}}.',
    'tool_choice',
  );
}
