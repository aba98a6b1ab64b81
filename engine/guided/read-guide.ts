import { messageOf } from '../../base/error-text.js';
import { type Guide, MAX_GUIDE_LENGTH } from '../../callbacks/guide.js';
import { checkSize } from './automaton-size.js';
import { checkedGrammar } from './check-grammar.js';
import { alt, type Grammar, GuideError, text } from './grammar.js';
import { MAX_READING_WORK, withinReadingWork } from './reading-work.js';
import { ebnfGrammar } from './sources/ebnf.js';
import { jsonSchemaGrammar } from './sources/json-schema.js';
import { regexExpr } from './sources/regex.js';
import type { JsonValue } from './sources/schema-keywords.js';
import { structuralTagGrammar } from './sources/structural-tag.js';

/**
 * Reads a guide without a vocabulary: returns the grammar that an automaton is made of. `maxWork`: most steps that it may
 * take. @throws GuideError if it cannot be followed, ReadingWorkError if it takes more steps
 */
export function readGuide(guide: Guide, maxWork = MAX_READING_WORK): Grammar {
  try {
    return withinReadingWork(maxWork, () => {
      const read = guideGrammar(guide);
      const grammar = checkedGrammar(read);
      checkSize(grammar);
      return { ...grammar, leftOut: read.leftOut ?? [] };
    });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new GuideError(
      'The guide has more parts in one another, or next to one another, than can be followed.',
    );
  }
}

/** Reads a guide into a grammar. @throws GuideError that says what is wrong with it */
function guideGrammar({ type, guide }: Guide): Grammar {
  if (guide.length > MAX_GUIDE_LENGTH) {
    throw new GuideError(
      `The guide is ${guide.length} characters long; at most ${MAX_GUIDE_LENGTH} are supported.`,
    );
  }
  switch (type) {
    case 'json':
      return jsonSchemaGrammar({ type: 'object' });
    case 'json_schema':
      return jsonSchemaGrammar(parsed(guide, 'The JSON schema'));
    case 'regex':
      return { rules: new Map([['root', regexExpr(guide, { mode: 'full' })]]), root: 'root' };
    case 'choice':
      return choiceGrammar(parsed(guide, 'The list of choices'));
    case 'ebnf_grammar':
      return ebnfGrammar(guide);
    case 'structural_tag':
      return structuralTagGrammar(parsed(guide, 'The structural tag'));
  }
}

function choiceGrammar(choices: JsonValue): Grammar {
  const isRight =
    Array.isArray(choices) &&
    choices.length > 0 &&
    choices.every((choice) => typeof choice === 'string' && choice !== '');
  if (!isRight) throw new GuideError('The choices must be a list of texts, none of them empty.');
  return { rules: new Map([['root', alt(...(choices as string[]).map(text))]]), root: 'root' };
}

function parsed(guide: string, what: string): JsonValue {
  try {
    return JSON.parse(guide) as JsonValue;
  } catch (error) {
    throw new GuideError(`${what} is not JSON: ${messageOf(error)}.`);
  }
}
