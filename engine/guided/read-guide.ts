import type { Guide } from '../../callbacks/guide.js';
import { checkSize } from './automaton-size.js';
import { checkedGrammar } from './check-grammar.js';
import { type Grammar, GuideError } from './grammar.js';
import { guideGrammar } from './guide-grammar.js';
import { MAX_READING_WORK, withinReadingWork } from './reading-work.js';

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
      'The guide has more parts in one another, or beside one another, than can be followed.',
    );
  }
}
