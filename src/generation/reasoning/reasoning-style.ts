import { carryForm } from '../../../base/written-json.js';
import { harmonyEffort } from '../harmony/effort.js';
import { isHarmonyTemplate } from '../harmony/tokens.js';
import type { PromptTokens, TextCodec } from '../text-model.js';
import { mentions } from '../tools/detect-format.js';
import {
  type AnswerReasoning,
  CHANNEL_MARKS,
  marksIn,
  type ReasoningMarks,
  THINK_MARKS,
} from './reasoning-marks.js';

/**
 * Ways to separate reasoning from the answer.
 *
 *   none          there is none
 *   qwen3         between markers; the prompt may hold the first one
 *   deepseek_r1   the same, and every answer begins with reasoning, even without a marker
 *   gemma4        in a channel before the answer
 *   harmony       messages in a channel of their own
 */
const REASONING_PARSER_NAMES = ['deepseek_r1', 'qwen3', 'gemma4', 'harmony', 'none'] as const;
export type ReasoningParserName = (typeof REASONING_PARSER_NAMES)[number];

/**
 * Finds how a model marks its reasoning, by its template: templates of reasoning models open it, or remove it from
 * earlier answers.
 */
export function reasoningStyle(
  source: string | null,
  chosen: ReasoningParserName | 'auto',
): ReasoningParserName {
  if (chosen !== 'auto') return chosen;
  if (isHarmonyTemplate(source)) return 'harmony';
  const marks = marksIn(source);
  if (marks === null) return 'none';
  return marks === CHANNEL_MARKS ? 'gemma4' : 'qwen3';
}

/** Marks around a model's reasoning. */
export function marksOf(style: ReasoningParserName): ReasoningMarks {
  return style === 'gemma4' ? CHANNEL_MARKS : THINK_MARKS;
}

/** Tokens at a prompt's end that can hold the markers and the text around them. */
const TAIL = 16;

/** Finds how the answer to this prompt begins; null: without reasoning. */
export function reasoningStart(
  style: ReasoningParserName,
  codec: TextCodec,
  prompt: PromptTokens,
): AnswerReasoning | null {
  if (style === 'none') return null;
  const marks = marksOf(style);
  if (style === 'harmony') return { start: 'maybe', marks };
  const detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
  const tail = (detokenizer.push(prompt.slice(-TAIL)) + detokenizer.flush()).trimEnd();
  if (tail.endsWith(marks.begin + marks.label)) return { start: 'open', marks };
  if (tail.endsWith(marks.end)) return null;
  return { start: style === 'deepseek_r1' ? 'open' : 'maybe', marks };
}

/** A client's settings for reasoning. */
export interface ReasoningWishes {
  effort?: string | undefined;
  /** Whether to reason at all, where the template has a switch for it; undefined: as the template has it. */
  thinks?: boolean | undefined;
  /** Variables for the template. */
  variables?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Template variables including the client's settings for reasoning. Calls `refuse` for a variable that the template
 * does not know, since it would have no effect, and for an effort of 'none' where the model reasons always. Any other
 * effort is a wish that a model without a word for it may leave open.
 */
export function templateVariables(
  source: string | null | undefined,
  wishes: ReasoningWishes,
  refuse: (param: string, reason: string) => never,
): Record<string, unknown> {
  const result = withWishes(source, wishes, refuse);
  if (wishes.variables !== undefined) carryForm(wishes.variables, result);
  return result;
}

function withWishes(
  source: string | null | undefined,
  { effort, thinks, variables }: ReasoningWishes,
  refuse: (param: string, reason: string) => never,
): Record<string, unknown> {
  const result = { ...variables };
  if (source === undefined) return result;
  const knows = (name: string) => source !== null && mentions(source, name);
  for (const [name, value] of Object.entries(result)) {
    const asksForNothing = name === 'enable_thinking' && value === false && marksIn(source) === null;
    if (asksForNothing) delete result[name];
    else if (!knows(name)) {
      // A client may have made the name up: only as much of it is shown as a template's own would have.
      const shown = name.slice(0, 128);
      refuse(`chat_template_kwargs.${shown}`, `the chat template of this model has no variable ${shown}`);
    }
  }
  const hasSwitch = knows('enable_thinking');
  if (thinks !== undefined && hasSwitch) result.enable_thinking ??= thinks;
  if (isHarmonyTemplate(source)) return harmonyEffort(effort, result, refuse);
  if (effort === undefined) return result;
  if (knows('reasoning_effort')) return { reasoning_effort: effort, ...result };
  if (hasSwitch) return { enable_thinking: effort !== 'none', ...result };
  if (effort !== 'none' || marksIn(source) === null) return result;
  return refuse('reasoning_effort', 'the chat template of this model has no way to turn reasoning off');
}
