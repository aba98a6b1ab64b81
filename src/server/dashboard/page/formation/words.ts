import type { SegmentKind, Track } from './track.js';

const DOING: Record<SegmentKind, string> = {
  queued: 'queued',
  context: 'reading its prompt',
  between: 'reading its prompt, waiting for its next chunk',
  generating: 'generating',
  paused: 'paused',
  resuming: 'resuming',
};

const ENDED: Record<string, string> = {
  stop: 'done',
  length: 'done, at its length limit',
  cancelled: 'cancelled',
  timeout: 'out of time',
  error: 'failed',
  gone: 'gone',
};

/** State of a request, or the way that it ended, in a few words. */
export function doingOf(track: Track): string {
  if (track.end !== null) return ENDED[track.end.reason] ?? `ended (${track.end.reason})`;
  if (track.doing === 'generating' && track.numbers.pauses > 0) return 'generating, resumed after a pause';
  return DOING[track.doing];
}

/** Names and values of the known numbers of a request. */
export function numbersOf({ numbers, end, adapter }: Track): [name: string, value: string][] {
  const { promptTokens, generated, maxNewTokens, cachedTokens, blocks, firstTokenMs, pauses } = numbers;
  const pairs: [string, string | null][] = [
    ['prompt', `${count(promptTokens)} tokens`],
    [
      'generated',
      maxNewTokens > 0 && end === null ? `${count(generated)} of ${count(maxNewTokens)}` : count(generated),
    ],
    ['from the cache', `${count(cachedTokens)} tokens`],
    ['KV blocks', end === null ? count(blocks) : null],
    ['first token', firstTokenMs >= 0 ? milliseconds(firstTokenMs) : null],
    ['pauses', pauses > 0 ? count(pauses) : null],
    ['adapter', adapter],
  ];
  return pairs.filter((pair): pair is [string, string] => pair[1] !== null);
}

/** One sentence about a request for a screen reader. */
export function sentenceOf(track: Track): string {
  const numbers = numbersOf(track).map(([name, value]) => `${name} ${value}`);
  return `Request ${track.id}: ${doingOf(track)}; ${numbers.join(', ')}.`;
}

export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Text of a duration: 7.4 ms, 118 ms, 2.31 s. */
export function milliseconds(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(2)} s`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
