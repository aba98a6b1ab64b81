import fc from 'fast-check';
import type {
  Formation,
  FormationEnd,
  FormationRow,
  FormationStep,
} from '../../../../../callbacks/formation.js';

/** Plan of a request's life; durations in milliseconds. */
export interface Life {
  arrivesMs: number;
  waitsMs: number;
  /** Context tokens and time of each chunk, and the wait before the next. */
  chunks: { tokens: number; tookMs: number; thenWaitsMs: number }[];
  generatesMs: number;
  /** Then it is paused so long, and reads its context again. */
  pause: { forMs: number; tookMs: number; generatesMs: number } | null;
  reason: string;
}

export const START_MS = 1_760_000_000_000;

export const life: fc.Arbitrary<Life> = fc.record({
  arrivesMs: fc.nat(3000),
  waitsMs: fc.nat(500),
  chunks: fc.array(
    fc.record({
      tokens: fc.integer({ min: 1, max: 64 }),
      tookMs: fc.integer({ min: 1, max: 120 }),
      thenWaitsMs: fc.nat(60),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  generatesMs: fc.integer({ min: 1, max: 1500 }),
  pause: fc.option(
    fc.record({
      forMs: fc.integer({ min: 1, max: 600 }),
      tookMs: fc.integer({ min: 1, max: 80 }),
      generatesMs: fc.integer({ min: 1, max: 500 }),
    }),
  ),
  reason: fc.constantFrom('stop', 'length', 'cancelled', 'timeout', 'error'),
});

interface Told {
  kind: number;
  beginMs: number;
  endMs: number;
  from: number;
  tokens: number;
}

/** Course of a request, in milliseconds from the start. */
export interface Course {
  id: number;
  arrivesMs: number;
  scheduledMs: number;
  firstTokenMs: number;
  endMs: number;
  promptTokens: number;
  steps: Told[];
  reason: string;
}

export function courseOf(
  { arrivesMs, waitsMs, chunks, generatesMs, pause, reason }: Life,
  id: number,
): Course {
  let ms = arrivesMs + waitsMs;
  let from = 0;
  const steps: Told[] = [];
  for (const [index, { tokens, tookMs, thenWaitsMs }] of chunks.entries()) {
    const isLast = index === chunks.length - 1;
    steps.push({ kind: isLast ? 2 : 0, beginMs: ms, endMs: ms + tookMs, from, tokens });
    ms += tookMs + (isLast ? 0 : thenWaitsMs);
    from += tokens;
  }
  const firstTokenMs = ms;
  ms += generatesMs;
  if (pause !== null) {
    steps.push({ kind: 1, beginMs: ms, endMs: ms, from: 0, tokens: 0 });
    const begin = ms + pause.forMs;
    steps.push({ kind: 2, beginMs: begin, endMs: begin + pause.tookMs, from: 0, tokens: from });
    ms = begin + pause.tookMs + pause.generatesMs;
  }
  const told = { arrivesMs, scheduledMs: arrivesMs + waitsMs, firstTokenMs, endMs: ms };
  return { id, ...told, promptTokens: from, steps, reason };
}

function stateAt(course: Course, ms: number): number {
  if (ms < course.scheduledMs) return 0;
  let state = 1;
  for (const { kind, beginMs, endMs } of course.steps) {
    if (kind === 1 && ms >= beginMs) state = 3;
    if (kind !== 1 && ms >= beginMs) state = kind === 2 && ms >= endMs ? 2 : 1;
  }
  return state;
}

const round = (ms: number) => Math.round(10 * ms) / 10;

/** The events that a server would send of these requests, one every 200 ms, the last when all have ended. */
export function eventsOf(courses: readonly Course[]): Formation[] {
  const lastMs = Math.max(0, ...courses.map(({ endMs }) => endMs));
  const events: Formation[] = [];
  let before = Number.NEGATIVE_INFINITY;
  for (let ms = 0; before < lastMs; ms += 200) {
    const now = Math.min(ms, lastMs + 1);
    const inside = (at: number) => at > before && at <= now;
    const ended = courses
      .filter(({ endMs }) => inside(endMs))
      .map(({ id, endMs, arrivesMs, promptTokens, reason }): FormationEnd => {
        return [id, `r${id}`, reason, round(endMs - now), endMs - arrivesMs, promptTokens, 9, 0];
      });
    const steps = courses.flatMap(({ id, steps: own }) =>
      own
        .filter(({ endMs }) => inside(endMs))
        .map(({ kind, beginMs, endMs, from, tokens }): FormationStep => {
          return [id, kind, round(beginMs - now), round(endMs - now), from, tokens];
        }),
    );
    const requests = courses
      .filter(({ arrivesMs, endMs }) => arrivesMs <= now && endMs > now)
      .map((course): FormationRow => {
        const since = (at: number) => (at <= now ? at - course.arrivesMs : -1);
        const times = [since(course.scheduledMs), since(course.firstTokenMs)];
        const counts = [course.promptTokens, course.promptTokens, 0, 0, 100, 1, 0, 0];
        return [
          course.id,
          `r${course.id}`,
          stateAt(course, now),
          now - course.arrivesMs,
          ...counts,
          ...times,
        ];
      });
    events.push(formation(now, events.length, { requests, ended, steps }));
    before = now;
  }
  return events;
}

/** An event with nothing in it but what is given. */
export function formation(ms: number, iteration: number, fields: Partial<Formation> = {}): Formation {
  return {
    v: 1,
    timeMs: START_MS + ms,
    iteration,
    requests: [],
    queued: 0,
    ended: [],
    steps: [],
    totals: {
      iterations: iteration,
      iterationMs: 10 * iteration,
      executorMs: 9 * iteration,
      contextTokens: 50 * iteration,
      generatedTokens: 20 * iteration,
      scheduledRequests: 4 * iteration,
      completedRequests: 0,
      pauses: 0,
      emptyGenerationSlots: 0,
    },
    longestIterationMs: 12,
    latency: { firstToken: null, interToken: null },
    blocks: { count: 10, tokensPerBlock: 32, runs: [10, -1] },
    ...fields,
  };
}
