import { closestName } from '../../base/did-you-mean.js';
import { says, worded } from '../../base/named-text.js';
import { isObject, shown } from '../../base/option-values.js';
import type { ChatMessage } from '../../models/chat-template.js';
import { ContextLengthError, InvalidRequestError } from '../errors/request-errors.js';
import {
  type ChatAsk,
  type ChatPlan,
  type PlannedFields,
  planChat,
  plannedFields,
  unseenPictures,
} from './chat-plan.js';
import { checkGuideEnds, type GuidedOptions, guideOf, leftOutWarning } from './guided.js';
import { checkFinalMessage, templateMessage } from './messages.js';
import { seeMessages } from './pictures/see-messages.js';
import { type ChatPrompt, hasReasoningChannels, type PromptModel, promptOf } from './prompt/chat-prompt.js';
import { reasoningBudget } from './reasoning/reasoning-budget.js';
import { THINK_MARKS } from './reasoning/reasoning-marks.js';
import type { TextModel } from './text-model.js';
import type { FunctionTool, ToolChoice } from './tools/types.js';

/** How an answer's reasoning is treated. */
export interface ReasoningOptions {
  /** How much the model is to reason, in the words of its template, such as low, medium or high. */
  effort?: string | undefined;
  /** Most tokens of reasoning: after them its end is forced. */
  maxTokens?: number | undefined;
}

/** Functions and reasoning of a chat in a program. */
export interface ChatOptions {
  messages?: readonly ChatMessage[] | undefined;
  tools?: readonly FunctionTool[] | undefined;
  toolChoice?: 'none' | 'auto' | 'required' | { name: string } | undefined;
  parallelToolCalls?: boolean | undefined;
  reasoning?: boolean | ReasoningOptions | undefined;
  guided?: GuidedOptions | undefined;
  stop?: string | readonly string[] | undefined;
  ignoreEos?: boolean | undefined;
  addGenerationPrompt?: boolean | undefined;
  continueFinalMessage?: boolean | undefined;
  templateVariables?: Readonly<Record<string, unknown>> | undefined;
  signal?: AbortSignal | undefined;
}

type ConversationOptions = Pick<
  ChatOptions,
  'addGenerationPrompt' | 'continueFinalMessage' | 'templateVariables' | 'signal'
>;

/**
 * True where an answer has parts to be separated: calls, messages in channels, or reasoning, for which
 * neither a guide nor, where its marks do not show in the text, a stop string is meant.
 */
export function hasParts(
  { messages, tools, toolChoice, reasoning, guided, stop }: ChatOptions,
  model: PromptModel,
): boolean {
  if (tools !== undefined || toolChoice !== undefined || reasoning !== undefined) return true;
  if (messages === undefined) return false;
  if (guided !== undefined || hasReasoningChannels(model, { messages })) return true;
  return stop !== undefined && (model.codec.specialTexts ?? []).includes(THINK_MARKS.end);
}

/** What a chat's plan and its reasoning's limit add to its request. */
export type LimitedFields = PlannedFields & {
  reasoningBudget?: Awaited<ReturnType<typeof reasoningBudget>>;
};

/** Plans a chat with functions or reasoning. @throws InvalidRequestError, ChatTemplateError */
export async function planOptions(
  model: TextModel,
  options: ChatOptions,
): Promise<{ plan: ChatPlan; fields: LimitedFields }> {
  const { messages, tools = [], guided, reasoning, ...rest } = options;
  if (messages === undefined) {
    throw new InvalidRequestError(
      'tools and reasoning need messages: a text alone is only continued.',
      'messages',
    );
  }
  const { effort, maxTokens }: ReasoningOptions = typeof reasoning === 'object' ? reasoning : {};
  if (guided !== undefined) checkGuideEnds(rest.ignoreEos ?? false, 'guided');
  const leftOut: string[] = [];
  const warn = (what: readonly string[]) => leftOut.push(leftOutWarning(what));
  const planned = await inOptionNames(async () =>
    planChat(model, {
      ...(await conversationOf(model, messages, rest)),
      tools,
      toolChoice: choiceOf(options),
      parallelToolCalls: rest.parallelToolCalls,
      guide: guided === undefined ? undefined : await guideOf(guided, 'guided', model.codec, warn),
      ignoreEos: rest.ignoreEos,
      reasoningEffort: effort,
      ...(reasoning === undefined ? {} : { thinks: reasoning !== false }),
    }),
  );
  const plan = { ...planned, warnings: [...planned.warnings, ...leftOut] };
  const budget = maxTokens === undefined ? undefined : { tokens: maxTokens, param: 'reasoning.maxTokens' };
  const limit = await reasoningBudget(model.codec, plan, budget);
  return {
    plan,
    fields: { ...plannedFields(plan), ...(limit && { reasoningBudget: limit }) },
  };
}

/** The prompt of a chat whose answer is read as it is. @throws InvalidRequestError, ChatTemplateError */
export function chatPrompt(
  model: PromptModel & Partial<Pick<TextModel, 'maxInputLen'>>,
  messages: readonly ChatMessage[],
  options: ConversationOptions,
): Promise<ChatPrompt & Pick<ChatPlan, 'unseen'>> {
  return inOptionNames(async () => {
    const ask = await conversationOf(model, messages, options);
    const prompt = await promptOf(model, ask, model.maxInputLen);
    return { ...prompt, unseen: unseenPictures(ask, prompt.imageGrids) };
  });
}

async function conversationOf(
  model: Pick<TextModel, 'sight' | 'whyBlind' | 'pictureSources'>,
  messages: readonly ChatMessage[],
  options: ConversationOptions,
): Promise<ChatAsk> {
  const { continueFinalMessage, addGenerationPrompt = !continueFinalMessage } = options;
  const { templateVariables, signal } = options;
  // Programs that have no conversations do not load the schemas.
  const { readMessages } = await import('../schemas/messages.js');
  const read = readMessages(messages);
  checkFinalMessage(
    { continue_final_message: continueFinalMessage, add_generation_prompt: addGenerationPrompt },
    read,
  );
  const sources = model.pictureSources;
  const seen = await seeMessages(model, read.map(templateMessage), { sources, signal });
  return {
    messages: seen.messages,
    pictures: seen.picturesOf(seen.messages),
    signal,
    addGenerationPrompt,
    continueFinalMessage,
    variables: templateVariables,
  };
}

/** Errors of a plan name fields as the server's clients know them. */
async function inOptionNames<T>(plan: () => Promise<T>): Promise<T> {
  try {
    return await plan();
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    const called = (name: string) => OPTION_NAMES[name] ?? name.replace('.function', '');
    const text = worded(error.text, ({ name }) => called(name));
    const param = called(error.param ?? '');
    if (error instanceof ContextLengthError) throw new ContextLengthError(text, param);
    throw new InvalidRequestError(text, param, error.apiCode);
  }
}

const OPTION_NAMES: Readonly<Record<string, string>> = {
  tool_choice: 'toolChoice',
  response_format: 'guided',
  reasoning_effort: 'reasoning.effort',
  chat_template_kwargs: 'templateVariables',
  continue_final_message: 'continueFinalMessage',
  add_generation_prompt: 'addGenerationPrompt',
};

function choiceOf({ tools = [], toolChoice = 'auto' }: ChatOptions): ToolChoice {
  const isNamed = typeof toolChoice === 'object';
  if ((isNamed || toolChoice === 'required') && tools.length === 0) {
    throw new InvalidRequestError(
      'toolChoice asks for a call, but there are no tools to call.',
      'toolChoice',
    );
  }
  if (!isNamed) return { mode: toolChoice };
  const { name } = toolChoice;
  const names = tools.map((tool) => tool.name);
  if (names.includes(name)) return { mode: 'named', name };
  throw new InvalidRequestError(
    says`toolChoice.name is ${JSON.stringify(name)}; the tools are ${names.join(', ')}.`,
    'toolChoice',
  );
}

const NAME = /^[\w.-]{1,64}$/;
const TOOL_FIELDS = ['name', 'description', 'parameters', 'strict'];

/** First fault of a list of functions, as one sentence; null if there is none. */
export function toolsFault(tools: readonly unknown[]): string | null {
  const names = new Set<unknown>();
  for (const [i, tool] of tools.entries()) {
    const where = `tools[${i}]`;
    if (!isObject(tool)) return `${where} is ${shown(tool)}; it must be { name, description, parameters }.`;
    const fault = toolFault(where, tool);
    if (fault !== null) return fault;
    if (names.has(tool.name))
      return `${where}.name is ${shown(tool.name)}, which another tool is called already.`;
    names.add(tool.name);
  }
  return null;
}

function toolFault(where: string, tool: Record<string, unknown>): string | null {
  const unknown = Object.keys(tool).find((name) => !TOOL_FIELDS.includes(name));
  if (unknown !== undefined) {
    if (unknown === 'function' || unknown === 'type') {
      return `${where} has ${unknown}, as in OpenAI's API; here a tool is what its "function" would be: { name, description, parameters }.`;
    }
    const meant = closestName(unknown, TOOL_FIELDS);
    return `${where} has no field ${shown(unknown)}; ${meant === null ? `fields: ${TOOL_FIELDS.join(', ')}.` : `did you mean ${meant}?`}`;
  }
  const { name, description, parameters, strict } = tool;
  if (typeof name !== 'string' || !NAME.test(name))
    return `${where}.name is ${shown(name)}; it must have 1 to 64 letters, digits, underscores, dots or hyphens.`;
  if (description !== undefined && typeof description !== 'string')
    return `${where}.description is ${shown(description)}; it must be a text.`;
  if (parameters !== undefined && !isObject(parameters))
    return `${where}.parameters is ${shown(parameters)}; it must be a JSON schema, an object.`;
  if (strict !== undefined && typeof strict !== 'boolean')
    return `${where}.strict is ${shown(strict)}; it must be true or false.`;
  return null;
}
