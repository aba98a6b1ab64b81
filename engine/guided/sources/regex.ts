import { type Expr, GuideError } from '../grammar.js';
import { exprOfTexts, MAX_TEXT_STATES } from '../texts/text-graph.js';
import type { TextSet } from '../texts/text-set.js';
import { parseRegex, regexFault } from './regex-reader.js';
import { textsOf } from './regex-texts.js';

export interface RegexOptions {
  /**
   * 'full': the text matches from its first character to its last (anchors at the ends change nothing). 'search': some part of
   * the text matches, as for JSON Schema's `pattern`; with anchors that part reaches to the text's ends.
   */
  mode: 'full' | 'search';
}

/** The texts of an ECMAScript regular expression. @throws GuideError naming the place and what is not supported */
export function regexTexts(pattern: string, { mode }: RegexOptions): TextSet {
  const regex = parseRegex(pattern);
  try {
    return textsOf(regex, mode);
  } catch (error) {
    if (error instanceof GuideError && error.code === 'SKEIN_GUIDE') throw regexFault(pattern, error.message);
    throw error;
  }
}

/** An expression for the texts of a regular expression. @throws as regexTexts, and where its automaton is too large */
export function regexExpr(pattern: string, options: RegexOptions): Expr {
  const expr = exprOfTexts(regexTexts(pattern, options));
  if (expr === null)
    throw regexFault(
      pattern,
      `with its look-aheads and anchors it takes an automaton of more than ${MAX_TEXT_STATES} states`,
    );
  return expr;
}
