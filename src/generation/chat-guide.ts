import { field, says } from '../../base/named-text.js';
import type { Guide } from '../../callbacks/guide.js';
import type { ChatAsk } from './chat-plan.js';
import { InvalidRequestError } from './errors.js';
import { checkGuideEnds, guideOf } from './guided.js';
import { knownGuide } from './known-guides.js';
import { type ReasoningStart, THINK_BEGIN, THINK_END } from './reasoning/reasoning-parser.js';
import type { TextCodec } from './text-model.js';
import type { ToolStyle } from './tools/detect-format.js';
import { guideAsFormat } from './tools/guide-format.js';
import { either, sequence, type TagFormat } from './tools/tag-format.js';
import {
  type CallGuideOptions,
  callsFormat,
  followedParameters,
  freeFormat,
  marker,
  parametersOf,
} from './tools/tool-guide.js';
import type { FunctionTool, ToolChoice, ToolFormatName } from './tools/types.js';

const NAMES_ARGUMENTS: ReadonlySet<ToolFormatName> = new Set(['pythonic', 'qwen3_coder']);

/** What guides depend on beside the request. */
export interface GuideSetting {
  style: ToolStyle;
  source: string | null;
  specialTexts: ReadonlySet<string>;
  codec: TextCodec;
  reasoning: ReasoningStart | null;
}

/** Form that the whole answer must have. @throws InvalidRequestError naming the schema at fault. */
export async function guideOfChat(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  setting: GuideSetting,
): Promise<Guide | undefined> {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const isStrict = tools.some(({ strict }) => strict);
  const isFree = !isForced && !isSingle && !isStrict && !ask.onlyKnownTools && ask.guide === undefined;
  if (tools.length === 0 || isFree) return wholeGuide(ask, choice, null, setting);
  return knownGuide(setting.codec, guideKey(ask, choice, tools, setting), async () => {
    const calls = await callGuide(ask, choice, tools, setting);
    // With calls there is one.
    return (await wholeGuide(ask, choice, calls, setting))!;
  });
}

function formOfCalls(ask: ChatAsk, choice: ToolChoice): { isForced: boolean; isSingle: boolean } {
  return {
    isForced: choice.mode === 'required' || choice.mode === 'named',
    isSingle: choice.mode === 'named' || ask.parallelToolCalls === false,
  };
}

/** All that a guide depends on beside the model, as JSON. */
function guideKey(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  { style, reasoning }: GuideSetting,
): string {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const functions = tools.map((tool) => [tool.name, tool.strict ?? false, parametersOf(tool)]);
  const { template, guide, ignoreEos = false } = ask;
  const key = [style.format, reasoning, isForced, isSingle, ignoreEos, template ?? null, guide ?? null];
  return JSON.stringify([...key, functions]);
}

/** Form that calls must have. @throws InvalidRequestError naming the schema at fault. */
async function callGuide(
  ask: ChatAsk,
  choice: ToolChoice,
  tools: readonly FunctionTool[],
  known: GuideSetting,
): Promise<TagFormat> {
  const { isForced, isSingle } = formOfCalls(ask, choice);
  const followsSchema = (tool: FunctionTool) => isForced || (tool.strict ?? false);
  for (const tool of tools)
    if (followsSchema(tool)) await checkParameters(tool, ask.tools ?? [], known.codec);
  checkGuideEnds(ask.ignoreEos ?? false, isForced || isSingle ? 'tool_choice' : 'tools');
  const { format } = known.style;
  const options: CallGuideOptions = {
    format,
    tools,
    isSingle,
    specialTexts: known.specialTexts,
    templateSource: known.source,
    // In formats that do not write arguments as one JSON object, their names still come from the schema.
    schemaOf: (tool) =>
      followsSchema(tool) || NAMES_ARGUMENTS.has(format) ? followedParameters(tool) : { type: 'object' },
  };
  return isForced || ask.guide !== undefined ? callsFormat(options) : freeFormat(options);
}

async function checkParameters(
  tool: FunctionTool,
  tools: readonly FunctionTool[],
  codec: TextCodec,
): Promise<void> {
  const param = `tools[${tools.indexOf(tool)}].function.parameters`;
  try {
    await guideOf({ json: followedParameters(tool) }, param, codec);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError(says`${field(param)}: ${error.text}`, param, error.apiCode);
  }
}

/** Joins calls, the form that the client asked for, and the reasoning before both into one guide. */
async function wholeGuide(
  ask: ChatAsk,
  choice: ToolChoice,
  calls: TagFormat | null,
  { reasoning, specialTexts, codec }: GuideSetting,
): Promise<Guide | undefined> {
  if (calls === null && (ask.guide === undefined || reasoning === null)) return ask.guide;
  const { isForced } = formOfCalls(ask, choice);
  const asked = ask.guide === undefined || (calls !== null && isForced) ? null : guideAsFormat(ask.guide);
  const formats = [calls, asked].filter((format) => format !== null);
  const answer = formats.length === 1 ? formats[0]! : either(...formats);
  const format = reasoning === null ? answer : behindReasoning(answer, reasoning, specialTexts);
  return guideOf(
    { structuralTag: { type: 'structural_tag', format } },
    calls === null ? 'response_format' : 'tools',
    codec,
  );
}

function behindReasoning(
  answer: TagFormat,
  start: ReasoningStart,
  specialTexts: ReadonlySet<string>,
): TagFormat {
  const isSpecial = specialTexts.has(THINK_END);
  const thoughts: TagFormat = isSpecial
    ? sequence({ type: 'any_text' }, marker(THINK_END, { specialTexts }))
    : { type: 'tag', begin: '', content: { type: 'any_text' }, end: THINK_END };
  const space: TagFormat = { type: 'regex', pattern: '\\n{0,2}' };
  const begun = sequence(marker(THINK_BEGIN, { specialTexts }), thoughts, space, answer);
  return start !== 'maybe' ? sequence(thoughts, space, answer) : either(begun, answer);
}
