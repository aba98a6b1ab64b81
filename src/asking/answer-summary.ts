import type { Answer } from './ask.js';

/** Milliseconds of an answer, and tokens a second after the first token. */
export interface AnswerTimings {
  loadMs: number | null;
  firstTokenMs: number | null;
  totalMs: number;
  tokensPerSecond: number | null;
}

export function answerTimings(answer: Answer, loadMs: number | null): AnswerTimings {
  const { usage, firstTokenMs, totalMs } = answer;
  const behind = usage === null || firstTokenMs === null ? 0 : usage.completionTokens - 1;
  const rate = behind > 0 ? (1000 * behind) / Math.max(1e-3, totalMs - firstTokenMs!) : null;
  return {
    loadMs: rounded(loadMs),
    firstTokenMs: rounded(firstTokenMs),
    totalMs: rounded(totalMs)!,
    tokensPerSecond: rounded(rate),
  };
}

/** Counts and times of an answer, in a line. */
export function answerSummary(answer: Answer, loadMs: number | null): string {
  const { usage, finishReason, seed } = answer;
  const { firstTokenMs, totalMs, tokensPerSecond } = answerTimings(answer, null);
  const cached = usage !== null && usage.cachedTokens > 0 ? ` (${usage.cachedTokens} of them cached)` : '';
  const parts = [
    ...(usage === null
      ? []
      : [`prompt ${usage.promptTokens} tokens${cached}`, `answer ${usage.completionTokens} tokens`]),
    ...(firstTokenMs === null ? [] : [`first after ${milliseconds(firstTokenMs)}`]),
    `all after ${milliseconds(totalMs)}`,
    ...(tokensPerSecond === null ? [] : [`${tokensPerSecond.toFixed(1)} tokens/s`]),
    `finish reason ${finishReason}`,
    ...(seed === null ? [] : [`seed ${seed}`]),
    ...(loadMs === null ? [] : [`loaded in ${milliseconds(loadMs)}`]),
  ];
  return parts.join(', ');
}

function milliseconds(value: number): string {
  return value < 10_000 ? `${value.toFixed(0)} ms` : `${(value / 1000).toFixed(1)} s`;
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 10) / 10;
}
