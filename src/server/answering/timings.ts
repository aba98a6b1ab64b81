import type { ChoiceRun } from './choice-run.js';

interface Asked {
  timings_per_token?: boolean | undefined;
}

/**
 * llama.cpp's timings of an answer so far, as a field next to its choices; empty where the request does not
 * ask for them.
 */
export function timingsOf({ timings_per_token: isAsked }: Asked, run: ChoiceRun): object {
  return isAsked ? { timings: timings(run) } : {};
}

/** The same as `,"timings":{...}`, for frames. */
export function timingsField({ timings_per_token: isAsked }: Asked, run: ChoiceRun): string {
  return isAsked ? `,"timings":${JSON.stringify(timings(run))}` : '';
}

/**
 * Prompt: the tokens that were computed, and the time from the request to the first token, waiting included. Predicted: all
 * answers, and the time since.
 */
export function timings({
  numPromptTokens,
  cachedTokens,
  completionTokens,
  promptMs,
  predictedMs,
}: ChoiceRun) {
  const computed = numPromptTokens - cachedTokens;
  return {
    cache_n: cachedTokens,
    prompt_n: computed,
    prompt_ms: promptMs,
    prompt_per_token_ms: per(promptMs, computed),
    prompt_per_second: per(1000 * computed, promptMs),
    predicted_n: completionTokens,
    predicted_ms: predictedMs,
    predicted_per_token_ms: per(predictedMs, completionTokens),
    predicted_per_second: per(1000 * completionTokens, predictedMs),
  };
}

/** A quotient that JSON can hold. */
const per = (amount: number, count: number) => (count > 0 ? amount / count : 0);
