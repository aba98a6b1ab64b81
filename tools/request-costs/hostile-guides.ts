import { ms } from './bounds.js';

/** A guide that costs as much as a guide can. */
export interface HostileGuide {
  what: string;
  /** Fields of the request. */
  fields: { guided_grammar: string } | { guided_regex: string };
}

/** At least 200 letters a, and with each the ways to read them are several times as many. */
const EXPLODES =
  'root ::= s{200} \ns ::= "a" s "a" | "a" t "a" "a" | "a" \n' +
  't ::= "a" s "a" "a" "a" | "a" t "a" | "a" s "a" "a" "a" "a" | "a"';

export const HOSTILE_GUIDES = {
  explodes: {
    what: 'a grammar whose ways to read a text are several times as many with each letter',
    fields: { guided_grammar: EXPLODES },
  },
  explodesAtOnce: {
    what: 'a pattern whose first mask alone is too much',
    fields: { guided_regex: '((a?){99}){99}' },
  },
  creeps: {
    what: 'a pattern of which each letter makes the next mask dearer',
    fields: { guided_regex: '[a-z]{2}[^]{0,3}(.*[a-m].{1200}|.*[n-z].{1100})' },
  },
} satisfies Record<string, HostileGuide>;

/** For comparison, the same clients with an ordinary pattern: what they cost by being there. */
export const PEACEFUL_GUIDE: HostileGuide = {
  what: 'for comparison: an ordinary pattern',
  fields: { guided_regex: '[a-z]{3,9}( [a-z]{3,9}){40}' },
};

/** Effect of clients with a guide on a neighbour who streams: milliseconds of processor time, and of the clock. */
export interface GuideCost {
  what: string;
  /** Longest of the engine's thread between two of the neighbour's tokens. */
  iterationMs: number;
  /** Longest for which the main thread did nothing else. */
  holdMs: number;
  /** Longest time on the clock between two of the neighbour's tokens. */
  gapMs: number;
}

export function guideTable(costs: readonly GuideCost[]): string {
  const rows = costs.map(
    ({ what, iterationMs, holdMs, gapMs }) =>
      `| ${what} | ${ms(iterationMs)} | ${ms(holdMs)} | ${ms(gapMs)} |`,
  );
  return [
    "| three clients with n = 8 and | engine's thread between two tokens of a neighbour | main thread held | the neighbour's longest wait for a token |",
    '|---|---|---|---|',
    ...rows,
  ].join('\n');
}
