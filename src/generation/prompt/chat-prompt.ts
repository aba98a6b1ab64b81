import { field, says } from '../../../base/named-text.js';
import { type ChatMessage, ChatTemplateError } from '../../../models/chat-template.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import type { ChatAsk, ChatPlan } from '../chat-plan.js';
import { harmonyMessages } from '../harmony/conversation.js';
import type { HarmonyStart } from '../harmony/parser.js';
import { blindness } from '../pictures/see-messages.js';
import { gridsIn, type ImageGrids } from '../pictures/spell-pictures.js';
import type { AnswerReasoning, ReasoningStart } from '../reasoning/reasoning-marks.js';
import {
  marksOf,
  type ReasoningParserName,
  reasoningStart,
  reasoningStyle,
  templateVariables,
} from '../reasoning/reasoning-style.js';
import { MAX_UNITS_PER_TOKEN } from '../text-length.js';
import type { ChatRenderOptions, PromptTokens, TextModel } from '../text-model.js';
import { type ToolStyle, toolStyle } from '../tools/detect-format.js';
import { gemma4Messages } from './gemma4-messages.js';
import { harmonyPromptEnd, type PromptEnd, promptEnd } from './prefill.js';
import { findPrompt } from './template-forms.js';

/** A chat's prompt. */
export interface ChatPrompt extends Pick<ChatPlan, 'promptTokens' | 'warnings'> {
  /** Places and grids of its pictures. */
  imageGrids: ImageGrids;
  style: ToolStyle;
  reasoning: AnswerReasoning | null;
  /** True where thoughts may stand in an answer's channels, before it or after it. */
  hasChannels: boolean;
  /** Where an answer in the harmony format begins; null: the model has another one. */
  harmony: HarmonyStart | null;
}

/** What the prompt of a chat depends on besides the chat. */
export type PromptModel = Pick<
  TextModel,
  'codec' | 'toolCallParser' | 'reasoningParser' | 'sight' | 'whyBlind' | 'pictureSources'
> &
  Partial<Pick<TextModel, 'maxSeqLen'>>;

/** The template's source; null: there is none, undefined: it is not known. */
export function sourceOf(
  { codec }: Pick<TextModel, 'codec'>,
  { template, tools = [] }: ChatAsk,
): string | null | undefined {
  const ofTools = tools.length > 0 ? codec.toolTemplateSource : null;
  return template ?? ofTools ?? codec.templateSource;
}

/** UTF-16 units of a prompt that is only counted, where the model takes fewer: tokenizing more would keep others waiting for seconds. */
const MAX_COUNTED_UNITS = 2 ** 18;

/**
 * The prompt of a chat that is counted or shown, not answered: the one that planChat plans. It may be longer than the
 * model takes, but no longer as a text than a chat's prompt or MAX_COUNTED_UNITS. @throws as planChat.
 */
export function toldPrompt(model: TextModel, ask: ChatAsk): Promise<ChatPrompt> {
  const { unitsPerToken = MAX_UNITS_PER_TOKEN } = model.codec;
  return promptOf(model, ask, Math.max(model.maxInputLen, Math.ceil(MAX_COUNTED_UNITS / unitsPerToken)));
}

/**
 * The prompt of a chat, for every caller that has messages. It names all tools, even where one must be called, so that
 * prompts of one conversation begin alike.
 * @param maxTokens see ChatRenderOptions; undefined: no limit. @throws as planChat.
 */
export async function promptOf(
  model: PromptModel,
  ask: ChatAsk,
  maxTokens: number | undefined,
): Promise<ChatPrompt> {
  const source = sourceOf(model, ask);
  const style = toolStyle(source ?? null, model.toolCallParser ?? 'auto');
  const thinking = reasoningStyle(source ?? null, model.reasoningParser ?? 'auto');
  const end = promptEndOf(model, ask, thinking);
  const { render, harmony } = end;
  const messages = harmony === null ? end.messages : harmonyMessages(end.messages);
  const variables = variablesOf(source, ask, render.begunReasoning !== undefined);
  const tools = ask.toolChoice?.mode === 'none' && !ask.showsTools ? [] : (ask.tools ?? []);
  const { usesTemplate } = style;
  const formOf =
    style.format === 'gemma4' && source != null
      ? (given: readonly ChatMessage[]) => gemma4Messages(given, source)
      : undefined;
  const { addSpecialTokens, template } = ask;
  const options = {
    maxTokens,
    contextTokens: model.maxSeqLen,
    ...render,
    addSpecialTokens,
    template,
    variables,
    ...picturesFor(model, ask),
  };
  const found = await inTemplatesName(
    ask,
    findPrompt({ messages, tools, usesTemplate, formOf }, ({ messages: given, tools: told }) =>
      model.codec.encodeChat(given, { ...options, ...(told && { tools: told }) }),
    ),
  );
  const { promptTokens, warnings } = found;
  return {
    promptTokens,
    imageGrids: imageGridsOf(model, ask, promptTokens),
    warnings,
    style: found.usesTemplate === usesTemplate ? style : { format: 'hermes', usesTemplate: false },
    reasoning:
      end.start === undefined
        ? reasoningStart(thinking, model.codec, promptTokens)
        : begunReasoning(end.start, thinking),
    hasChannels: thinking === 'gemma4',
    harmony,
  };
}

/** Placeholders of the pictures of a chat. @throws InvalidRequestError where the model reads text alone */
function picturesFor(model: PromptModel, { pictures = [] }: ChatAsk): Pick<ChatRenderOptions, 'pictures'> {
  if (pictures.length === 0) return {};
  const { sight } = model;
  if (!sight) throw blindness(model, 'messages');
  return { pictures: { placeholder: sight.placeholder, texts: pictures.map(({ text }) => text) } };
}

function imageGridsOf({ sight }: PromptModel, { pictures = [] }: ChatAsk, tokens: PromptTokens): ImageGrids {
  return !sight || pictures.length === 0 ? [] : gridsIn(tokens, sight.tokenId, pictures);
}

/** True where reasoning is always separated: it is in channels, whose marks are no text of an answer. */
export function hasReasoningChannels(model: PromptModel, ask: ChatAsk): boolean {
  const style = reasoningStyle(sourceOf(model, ask) ?? null, model.reasoningParser ?? 'auto');
  return style === 'gemma4' || isHarmony(model, ask);
}

/**
 * True where answers are messages in channels, for which one parser separates reasoning, calls and content.
 */
function isHarmony({ codec, toolCallParser, reasoningParser }: PromptModel, ask: ChatAsk): boolean {
  const source = sourceOf({ codec }, ask) ?? null;
  const { format } = toolStyle(source, toolCallParser ?? 'auto');
  return format === 'harmony' || reasoningStyle(source, reasoningParser ?? 'auto') === 'harmony';
}

function begunReasoning(start: ReasoningStart | null, style: ReasoningParserName): AnswerReasoning | null {
  return start === null ? null : { start, marks: marksOf(style) };
}

const HARMONY_REASONING = { message: 'maybe', analysis: 'inside', final: null } as const;

function promptEndOf(
  model: PromptModel,
  ask: ChatAsk,
  thinking: ReasoningParserName,
): PromptEnd & { harmony: HarmonyStart | null } {
  if (!isHarmony(model, ask)) return { ...promptEnd(ask, thinking), harmony: null };
  const { start, ...rest } = harmonyPromptEnd(ask);
  return { ...rest, start: HARMONY_REASONING[start], harmony: start };
}

/** @param isBegun true where reasoning has begun: the answer continues it. */
function variablesOf(
  source: string | null | undefined,
  { reasoningEffort: effort, thinks, variables }: ChatAsk,
  isBegun: boolean,
): Record<string, unknown> {
  const wishes = isBegun
    ? { effort: effort === 'none' ? undefined : effort, thinks: true, variables }
    : { effort, thinks, variables };
  return templateVariables(source, wishes, (param, reason) => {
    throw new InvalidRequestError(
      says`${field(param)} is refused: ${reason}.`,
      param,
      'unsupported_parameter',
    );
  });
}

/** Errors of a template that the request brought are errors of that field. */
async function inTemplatesName<T>({ template }: ChatAsk, made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    if (template === undefined || !(error instanceof ChatTemplateError)) throw error;
    throw new InvalidRequestError(error.text, 'chat_template');
  }
}
