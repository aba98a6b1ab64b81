/**
 * The kinds of guides, by TensorRT-LLM's names; choice is our own.
 *
 *   json             any JSON object; the guide is empty
 *   json_schema      the guide is a JSON schema
 *   regex            the whole answer matches the regular expression
 *   choice           the guide is a JSON list of texts, of which the answer is one
 *   ebnf_grammar     see ebnfGrammar
 *   structural_tag   the guide is JSON: see structuralTagGrammar
 */
export const GUIDE_TYPES = [
  'json',
  'json_schema',
  'regex',
  'choice',
  'ebnf_grammar',
  'structural_tag',
] as const;

export type GuideType = (typeof GUIDE_TYPES)[number];

/** The form that an answer must have. */
export interface Guide {
  type: GuideType;
  /** The guide, written as its type asks for; empty for json. */
  guide: string;
}

/** Longest guide, in UTF-16 units. */
export const MAX_GUIDE_LENGTH = 256 * 1024;
