import { RecentValues } from '../../base/recent-values.js';
import type { Guide } from '../../callbacks/guide.js';
import type { ChatAsk } from './chat-plan.js';
import { checkGuideEnds, guideOf } from './guided.js';
import { harmonyFormat } from './harmony/guide.js';
import type { HarmonyStart } from './harmony/parser.js';
import type { AnswerReasoning } from './reasoning/reasoning-marks.js';
import type { TextCodec } from './text-model.js';
import type { ToolStyle } from './tools/detect-format.js';
import { ANY_ARGUMENTS, type FollowedSchema, followedSchema, parametersOf } from './tools/followed-schema.js';
import { either, guideAsFormat, sequence, type TagFormat, text } from './tools/guide-format.js';
import { type CallGuideOptions, callsFormat, freeFormat, marker } from './tools/tool-guide.js';
import type { FunctionTool, TextFormatName, ToolChoice, ToolFormatName } from './tools/types.js';

const NAMES_ARGUMENTS: ReadonlySet<ToolFormatName> = new Set(['pythonic', 'qwen3_coder']);

/** What guides depend on besides the request. */
export interface GuideSetting {
  style: ToolStyle;
  source: string | null;
  specialTexts: ReadonlySet<string>;
  codec: TextCodec;
  reasoning: AnswerReasoning | null;
  harmony: HarmonyStart | null;
}

/** Form of a chat's answer. */
export interface ChatGuide {
  /** undefined: any. */
  guide: Guide | undefined;
  /** A sentence about each function whose schema is not followed as a whole. */
  warnings: readonly string[];
}

/** Form that the whole answer must have. @throws InvalidRequestError naming the schema at fault. */
export async function guideOfChat(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  setting: GuideSetting,
): Promise<ChatGuide> {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const isStrict = tools.some(({ strict }) => strict);
  const isFree = !isForced && !isSingle && !isStrict && !ask.onlyKnownTools && ask.guide === undefined;
  if (tools.length === 0 || isFree)
    return { guide: await wholeGuide(ask, choice, null, setting), warnings: [] };
  return knownGuide(setting.codec, guideKey(ask, choice, tools, setting), async () => {
    const warnings: string[] = [];
    const calls = await callGuide(ask, choice, tools, setting, (text) => warnings.push(text));
    return { guide: await wholeGuide(ask, choice, calls, setting), warnings };
  });
}

function formOfCalls(ask: ChatAsk, choice: ToolChoice): { isForced: boolean; isSingle: boolean } {
  return {
    isForced: choice.mode === 'required' || choice.mode === 'named',
    isSingle: choice.mode === 'named' || ask.parallelToolCalls === false,
  };
}

/** All that a guide depends on besides the model, as JSON. */
function guideKey(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  { style, reasoning, harmony }: GuideSetting,
): string {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const functions = tools.map((tool) => [tool.name, tool.strict ?? false, parametersOf(tool)]);
  const { template, guide, ignoreEos = false } = ask;
  const key = [
    style.format,
    reasoning,
    harmony,
    isForced,
    isSingle,
    ignoreEos,
    template ?? null,
    guide ?? null,
  ];
  return JSON.stringify([...key, functions]);
}

/** How calls are to be written. @throws InvalidRequestError naming the schema at fault. */
async function callGuide(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  known: GuideSetting,
  warn: (text: string) => void,
): Promise<CallGuideOptions> {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const { format } = known.style;
  // In formats that do not write arguments as one JSON object, their names still come from the schema.
  const followed = new Map<FunctionTool, FollowedSchema>();
  for (const tool of tools) {
    if (!isForced && !tool.strict && !NAMES_ARGUMENTS.has(format)) continue;
    const param = `tools[${(ask.tools ?? []).indexOf(tool)}].function.parameters`;
    followed.set(tool, await followedSchema(tool, param, format, known.codec, warn));
  }
  checkGuideEnds(ask.ignoreEos ?? false, isForced || isSingle ? 'tool_choice' : 'tools');
  return {
    tools,
    isSingle,
    specialTexts: known.specialTexts,
    templateSource: known.source,
    schemaOf: (tool) => followed.get(tool) ?? ANY_ARGUMENTS,
  };
}

/** Joins calls, the form that the client asked for, and the reasoning before both into one guide. */
async function wholeGuide(
  ask: ChatAsk,
  choice: ToolChoice,
  calls: CallGuideOptions | null,
  setting: GuideSetting,
): Promise<Guide | undefined> {
  const { reasoning, harmony, specialTexts } = setting;
  const isWhole = harmony === null && reasoning === null;
  if (calls === null && (ask.guide === undefined || isWhole)) return ask.guide;
  const { isForced } = formOfCalls(ask, choice);
  const content = ask.guide === undefined || (calls !== null && isForced) ? null : guideAsFormat(ask.guide);
  const isBound = isForced || ask.guide !== undefined;
  const format =
    harmony === null
      ? textFormat(calls, isBound, content, setting)
      : harmonyFormat({ start: harmony, calls, isForced: isBound, content, specialTexts });
  return guideOf(
    { structuralTag: { type: 'structural_tag', format } },
    calls === null ? 'response_format' : 'tools',
    setting.codec,
  );
}

/** @param isBound true where an answer is calls, or has the form of `content` */
function textFormat(
  calls: CallGuideOptions | null,
  isBound: boolean,
  content: TagFormat | null,
  { style, reasoning, specialTexts }: GuideSetting,
): TagFormat {
  const format = style.format as TextFormatName;
  const called = calls === null ? null : isBound ? callsFormat(format, calls) : freeFormat(format, calls);
  const formats = [called, content].filter((format) => format !== null);
  const answer = formats.length === 1 ? formats[0]! : either(...formats);
  return reasoning === null ? answer : behindReasoning(answer, reasoning, specialTexts);
}

function behindReasoning(
  answer: TagFormat,
  { start, marks }: AnswerReasoning,
  specialTexts: ReadonlySet<string>,
): TagFormat {
  const isSpecial = specialTexts.has(marks.end);
  const thoughts: TagFormat = isSpecial
    ? sequence({ type: 'any_text' }, marker(marks.end, { specialTexts }))
    : { type: 'tag', begin: '', content: { type: 'any_text' }, end: marks.end };
  const space: TagFormat = { type: 'regex', pattern: '\\n{0,2}' };
  const opening = marker(marks.begin, { specialTexts });
  const label = marks.label === '' ? [] : [text(marks.label + marks.gap)];
  const begun = sequence(opening, ...label, thoughts, space, answer);
  return start !== 'maybe' ? sequence(thoughts, space, answer) : either(begun, answer);
}

/** Most guides of a model that are remembered, and most UTF-16 units of them and their keys: 4 MB at most. */
const MAX_GUIDES = 64;
const MAX_UNITS = 2 ** 21;

const known = new WeakMap<TextCodec, RecentValues<ChatGuide>>();

/**
 * A guide that has been made and checked before for the same key, or a new one. Functions that agents send with each request would
 * else be checked, written and checked again one by one.
 * @param key all that the guide depends on besides the codec
 */
async function knownGuide(codec: TextCodec, key: string, make: () => Promise<ChatGuide>): Promise<ChatGuide> {
  let guides = known.get(codec);
  if (guides === undefined) {
    guides = new RecentValues({ maxCount: MAX_GUIDES, maxUnits: MAX_UNITS });
    known.set(codec, guides);
  }
  const before = guides.get(key);
  if (before !== undefined) return before;
  const made = await make();
  const units = (made.guide?.guide.length ?? 0) + made.warnings.join('').length;
  guides.set(key, made, key.length + units);
  return made;
}
