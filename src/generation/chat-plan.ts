import type { Guide } from '../../callbacks/guide.js';
import type { ChatMessage } from '../../models/chat-template.js';
import { guideOfChat } from './chat-guide.js';
import { type HarmonyOptions, HarmonyParser, TextCallsParser } from './harmony/parser.js';
import { areSpecial, shownHarmony } from './harmony/tokens.js';
import type { Picture } from './pictures/picture.js';
import type { UnseenPictures } from './pictures/seen-request.js';
import { type ChatPrompt, promptOf, sourceOf } from './prompt/chat-prompt.js';
import { type AnswerReasoning, CHANNEL_BEGIN, CHANNEL_END } from './reasoning/reasoning-marks.js';
import { PlainParser, ReasoningParser } from './reasoning/reasoning-parser.js';
import type { PromptTokens, ShownToken, TextModel } from './text-model.js';
import {
  CALL_BEGIN,
  CALL_END,
  CALL_SEPARATOR,
  CALLS_BEGIN,
  CALLS_END,
  DeepSeekParser,
} from './tools/deepseek-parser.js';
import { GEMMA4_BEGIN, GEMMA4_END, Gemma4Parser } from './tools/gemma4-parser.js';
import { QUOTE } from './tools/gemma4-value.js';
import { HERMES_BEGIN, HERMES_END, HermesParser } from './tools/hermes-parser.js';
import { Llama3Parser, PYTHON_TAG } from './tools/llama3-parser.js';
import { ARGS, CALL_ID, MistralParser, TOOL_CALLS } from './tools/mistral-parser.js';
import { PythonicParser } from './tools/pythonic-parser.js';
import { Qwen3CoderParser } from './tools/qwen3-coder-parser.js';
import type {
  AnswerParser,
  AnswerPart,
  FunctionTool,
  TextFormatName,
  ToolChoice,
  ToolFormatName,
} from './tools/types.js';

/** A chat to answer, with functions that may be called; its answer may begin with reasoning. */
export interface ChatAsk {
  messages: readonly ChatMessage[];
  /** The pictures that parts of the type 'image' stand for, in the order of these. */
  pictures?: readonly Picture[] | undefined;
  /** Ends the wait for what pictures are made into. */
  signal?: AbortSignal | undefined;
  /** Functions that the model may call. */
  tools?: readonly FunctionTool[] | undefined;
  /** Choice whether functions are called. Default auto. */
  toolChoice?: ToolChoice | undefined;
  /** True where the prompt names the functions even if none may be called. Default false. */
  showsTools?: boolean | undefined;
  /** Allows several calls in an answer; false: at most one. Default true. */
  parallelToolCalls?: boolean | undefined;
  /** Restricts calls to `tools`, even where the model chooses whether to call. */
  onlyKnownTools?: boolean | undefined;
  /** Form that an answer without a call must have. */
  guide?: Guide | undefined;
  /** Continues past the model's end tokens. */
  ignoreEos?: boolean | undefined;
  addGenerationPrompt?: boolean | undefined;
  continueFinalMessage?: boolean | undefined;
  /** Adds the tokens that the model wants around a text, besides those of the template. */
  addSpecialTokens?: boolean | undefined;
  /** Chat template in place of the model's; its author is not trusted with time or memory. */
  template?: string | undefined;
  /** Further variables of the template. */
  variables?: Readonly<Record<string, unknown>> | undefined;
  reasoningEffort?: string | undefined;
  /** Whether the model reasons, where its template has a switch for it. Default: as the template has it. */
  thinks?: boolean | undefined;
}

/** Prompt and settings for a chat, and how its answers are read. */
export interface ChatPlan {
  /** Pictures have their placeholder token. */
  promptTokens: PromptTokens;
  /** Its pictures; null: it has none. */
  unseen: UnseenPictures | null;
  /** What was changed about the functions for the template, and what of their schemas is not followed: a sentence each. */
  warnings: readonly string[];
  guide: Guide | undefined;
  /** Special tokens that the parser reads as text. */
  shownTokens: readonly ShownToken[];
  /** Beginning of an answer's reasoning; null: answers have no reasoning. */
  reasoning: AnswerReasoning | null;
  /** How an answer in the harmony format is read; null: it has another one. */
  harmony: HarmonyOptions | null;
  /** Form of call ids that the template expects. */
  callIds: 'openai' | 'mistral';
  /** Makes a parser for each answer, and one for its stop strings; null: an answer is only content. */
  createParser: (() => AnswerParser) | null;
}

/** What a request for text has of a plan. */
export type PlannedFields = Pick<
  ChatPlan,
  'promptTokens' | 'guide' | 'shownTokens' | 'createParser' | 'unseen'
>;

export function plannedFields(plan: ChatPlan): PlannedFields {
  const { promptTokens, guide, shownTokens, createParser, unseen } = plan;
  return { promptTokens, guide, shownTokens, createParser, unseen };
}

const MARKERS: Readonly<Record<TextFormatName, readonly string[]>> = {
  hermes: [HERMES_BEGIN, HERMES_END],
  llama3_json: [PYTHON_TAG],
  pythonic: [],
  mistral: [TOOL_CALLS, CALL_ID, ARGS],
  qwen3_coder: [HERMES_BEGIN, HERMES_END],
  deepseek_v3: [CALLS_BEGIN, CALLS_END, CALL_BEGIN, CALL_END, CALL_SEPARATOR],
  gemma4: [GEMMA4_BEGIN, GEMMA4_END, QUOTE],
};

/** Plans a chat. @throws InvalidRequestError, ChatTemplateError. */
export async function planChat(model: TextModel, ask: ChatAsk): Promise<ChatPlan> {
  const { promptTokens, imageGrids, warnings, ...found } = await promptOf(model, ask, model.maxInputLen);
  const { style, reasoning } = found;
  const choice: ToolChoice = ask.toolChoice ?? { mode: 'auto' };
  const tools = choice.mode === 'none' ? [] : toolsOf(ask.tools ?? [], choice);
  const specialTexts = new Set(model.codec.specialTexts ?? []);
  const source = sourceOf(model, ask) ?? null;
  const known = { ...found, source, specialTexts, codec: model.codec };
  const form = await guideOfChat(ask, choice, tools, known);
  const harmony = found.harmony && {
    start: found.harmony,
    functions: tools.length === 0 ? null : new Set(tools.map(({ name }) => name)),
    isMarked: areSpecial(specialTexts),
  };
  return {
    promptTokens,
    unseen: unseenPictures(ask, imageGrids),
    warnings: [...warnings, ...form.warnings],
    guide: form.guide,
    reasoning,
    harmony,
    callIds: style.format === 'mistral' && style.usesTemplate ? 'mistral' : 'openai',
    ...(harmony === null
      ? textReading(style.format as TextFormatName, found, tools, choice, specialTexts)
      : harmonyAnswers(harmony, style.format, tools, choice, specialTexts)),
  };
}

/** The pictures of a chat, and their places; null: it has none. */
export function unseenPictures(
  { pictures = [], signal }: ChatAsk,
  imageGrids: UnseenPictures['imageGrids'],
): UnseenPictures | null {
  return pictures.length === 0 ? null : { pictures, imageGrids, signal };
}

/** How answers are read. */
type Reading = Pick<ChatPlan, 'shownTokens' | 'createParser'>;

function textReading(
  format: TextFormatName,
  { reasoning, hasChannels }: Pick<ChatPrompt, 'reasoning' | 'hasChannels'>,
  tools: readonly FunctionTool[],
  choice: ToolChoice,
  specialTexts: ReadonlySet<string>,
): Reading {
  const shown = [
    ...(tools.length > 0 ? MARKERS[format] : []),
    ...(reasoning === null ? [] : [reasoning.marks.begin, reasoning.marks.end]),
    ...(hasChannels ? [CHANNEL_BEGIN, CHANNEL_END] : []),
  ];
  const createParser = () => {
    const text = () => (hasChannels ? new Gemma4Parser([]) : new PlainParser());
    const inner = tools.length === 0 ? text() : onlyCalls(callParser(format, tools), choice);
    return reasoning === null ? inner : new ReasoningParser(reasoning, inner);
  };
  const hasParts = tools.length > 0 || reasoning !== null || hasChannels;
  return {
    shownTokens: [...new Set(shown)].filter((text) => specialTexts.has(text)),
    createParser: hasParts ? createParser : null,
  };
}

function harmonyAnswers(
  options: HarmonyOptions,
  format: ToolFormatName,
  tools: readonly FunctionTool[],
  choice: ToolChoice,
  specialTexts: ReadonlySet<string>,
): Reading {
  const createParser = () => {
    const messages = new HarmonyParser(options);
    if (format === 'harmony' || tools.length === 0) return messages;
    return new TextCallsParser(messages, callParser(format, tools));
  };
  return {
    shownTokens: shownHarmony(specialTexts),
    createParser: () => onlyCalls(createParser(), choice),
  };
}

function onlyCalls(parser: AnswerParser, { mode }: ToolChoice): AnswerParser {
  return mode === 'required' || mode === 'named' ? new CallsOnlyParser(parser) : parser;
}

/**
 * Makes the parser that keeps stop strings out of the reasoning of a chat whose answers are not taken apart, and show the marks of reasoning;
 * null: there is no reasoning.
 */
export function stopParser(reasoning: AnswerReasoning | null): ChatPlan['createParser'] {
  if (reasoning === null) return null;
  return () => new ReasoningParser(reasoning, new PlainParser());
}

function toolsOf(tools: readonly FunctionTool[], choice: ToolChoice): readonly FunctionTool[] {
  if (choice.mode !== 'named') return tools;
  return tools.filter(({ name }) => name === choice.name);
}

function callParser(format: TextFormatName, tools: readonly FunctionTool[]): AnswerParser {
  const names = new Set(tools.map(({ name }) => name));
  switch (format) {
    case 'hermes':
      return new HermesParser();
    case 'llama3_json':
      return new Llama3Parser(names);
    case 'pythonic':
      return new PythonicParser(names);
    case 'mistral':
      return new MistralParser();
    case 'qwen3_coder':
      return new Qwen3CoderParser(tools);
    case 'deepseek_v3':
      return new DeepSeekParser();
    case 'gemma4':
      return new Gemma4Parser(tools);
  }
}

/**
 * Reads an answer that has to be calls. What another parser takes for content is then the beginning of a call that a limit has cut, or what a
 * format writes between calls: markup, and no text for a reader.
 */
export class CallsOnlyParser implements AnswerParser {
  readonly #calls: AnswerParser;
  readonly held = 0;

  constructor(calls: AnswerParser) {
    this.#calls = calls;
  }

  push(text: string): AnswerPart[] {
    return withoutContent(this.#calls.push(text));
  }

  end(): AnswerPart[] {
    return withoutContent(this.#calls.end());
  }
}

function withoutContent(parts: readonly AnswerPart[]): AnswerPart[] {
  return parts.filter(({ type }) => type !== 'content');
}
