import type { LanguageModelV3CallOptions, SharedV3Warning } from '@ai-sdk/provider';
import type { FunctionTool } from '../generation/tools/types.js';
import type { GenerateOptions } from '../library/answers.js';
import { given } from '../library/foreign-content.js';
import { messagesOf } from './prompt-messages.js';

/** Options of Skein for a call of the SDK, and what of the call is not followed. */
export interface AskedCall {
  options: GenerateOptions;
  warnings: SharedV3Warning[];
}

/** @throws InvalidRequestError as messagesOf */
export function askedCall(call: LanguageModelV3CallOptions): AskedCall {
  const warnings: SharedV3Warning[] = [];
  const tools: FunctionTool[] = [];
  for (const tool of call.tools ?? []) {
    if (tool.type === 'function') {
      const { name, description, inputSchema, strict } = tool;
      tools.push({ name, description, parameters: { ...inputSchema }, strict });
    } else warnings.push({ type: 'unsupported', feature: `the provider-defined tool ${tool.id}` });
  }
  const { responseFormat: format, toolChoice: choice, stopSequences } = call;
  const toolChoice = choice?.type === 'tool' ? { name: choice.toolName } : choice?.type;
  const stop = stopSequences?.filter((text) => text !== '');
  const options: GenerateOptions = {
    messages: messagesOf(call.prompt),
    // With a list of tools, an empty one too, reasoning is separated from the answer.
    tools,
    toolChoice: tools.length === 0 ? undefined : toolChoice,
    guided: format?.type === 'json' ? { json: format.schema ?? true, isLenient: true } : undefined,
    stop: stop?.length ? stop : undefined,
    maxTokens: call.maxOutputTokens,
    temperature: call.temperature,
    topP: call.topP,
    topK: call.topK,
    presencePenalty: call.presencePenalty,
    frequencyPenalty: call.frequencyPenalty,
    seed: call.seed,
    signal: call.abortSignal,
  };
  // What the call says nothing of is as providerOptions say.
  return { options: { ...call.providerOptions?.skein, ...given(options) }, warnings };
}
