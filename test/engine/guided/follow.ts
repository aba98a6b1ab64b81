import type { Guide, GuideType } from '../../../callbacks/guide.js';
import { newAutomaton } from '../../../engine/guided/automaton.js';
import { GrammarMatcher } from '../../../engine/guided/grammar-matcher.js';
import type { Places } from '../../../engine/guided/places.js';
import { readGuide } from '../../../engine/guided/read-guide.js';

export function matcherOf(type: GuideType, guide: unknown): GrammarMatcher {
  const text = typeof guide === 'string' && type !== 'json_schema' ? guide : JSON.stringify(guide);
  return new GrammarMatcher(newAutomaton(readGuide({ type, guide: text } satisfies Guide)));
}

/** By byte, the places after it; null: it does not fit. */
export function nextOf(matcher: GrammarMatcher, places: Places): (Places | null)[] {
  return Array.from({ length: 256 }, (_, byte) => matcher.step(places, byte)?.places ?? null);
}

/** True if the guide accepts the whole text, given as a string or as bytes. */
export function matches(matcher: GrammarMatcher, text: string | readonly number[]): boolean {
  const places = matcher.follow(
    matcher.start,
    typeof text === 'string' ? Buffer.from(text) : Uint8Array.from(text),
  );
  return places?.isAccepting ?? false;
}
