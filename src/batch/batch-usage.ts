import { isObject } from '../../base/option-values.js';

/** Tokens that answers took. */
export interface BatchUsage {
  promptTokens: number;
  /** How many of them were found in the cache. */
  cachedTokens: number;
  completionTokens: number;
  /** How many of them were reasoning. */
  reasoningTokens: number;
}

export const NO_USAGE: Readonly<BatchUsage> = {
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
};

export function plus(one: BatchUsage, other: BatchUsage): BatchUsage {
  return {
    promptTokens: one.promptTokens + other.promptTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    completionTokens: one.completionTokens + other.completionTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
  };
}

/** What an answer took, of any of the routes; nothing where it does not report that. */
export function usageOf(answer: unknown): BatchUsage {
  if (!isObject(answer) || !isObject(answer.usage)) return NO_USAGE;
  const { usage } = answer;
  const details = (name: string) => (isObject(usage[name]) ? usage[name] : {});
  return {
    promptTokens: count(usage.prompt_tokens ?? usage.input_tokens),
    cachedTokens: count(
      details('prompt_tokens_details').cached_tokens ?? details('input_tokens_details').cached_tokens,
    ),
    completionTokens: count(usage.completion_tokens ?? usage.output_tokens),
    reasoningTokens: count(
      details('completion_tokens_details').reasoning_tokens ??
        details('output_tokens_details').reasoning_tokens,
    ),
  };
}

/** Characters of an answer up to which it is parsed for its usage. */
const SHORT_ANSWER = 2 ** 18;
const USAGE = '"usage":';

/** The same of an answer's text: of a long one only the last object named usage is parsed, which in all routes is its own. */
export function usageInText(text: string): BatchUsage {
  if (text.length <= SHORT_ANSWER) return usageOf(JSON.parse(text));
  // A quotation mark inside of a text has a backslash in front of it.
  const at = text.lastIndexOf(USAGE);
  if (at < 0) return NO_USAGE;
  try {
    return usageOf({ usage: JSON.parse(objectAt(text, at + USAGE.length)) });
  } catch {
    return NO_USAGE;
  }
}

/** The text of an object of numbers and of such objects. */
function objectAt(text: string, start: number): string {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return text.slice(start, at + 1);
  }
  return '';
}

const count = (value: unknown) => (typeof value === 'number' ? value : 0);
