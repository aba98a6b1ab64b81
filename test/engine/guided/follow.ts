import { Automaton } from '../../../engine/guided/automaton.js';
import { GrammarMatcher } from '../../../engine/guided/grammar-matcher.js';
import { type Guide, type GuideType, guideGrammar } from '../../../engine/guided/guide.js';

export function matcherOf(type: GuideType, guide: unknown): GrammarMatcher {
  const text = typeof guide === 'string' && type !== 'json_schema' ? guide : JSON.stringify(guide);
  return new GrammarMatcher(new Automaton(guideGrammar({ type, guide: text } satisfies Guide)));
}

/** Whether the bytes, or those of the text, are what the guide asks for. */
export function matches(matcher: GrammarMatcher, text: string | readonly number[]): boolean {
  const places = matcher.follow(
    matcher.start,
    typeof text === 'string' ? Buffer.from(text) : Uint8Array.from(text),
  );
  return places?.isAccepting ?? false;
}
