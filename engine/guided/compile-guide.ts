import { messageOf } from '../../base/error-text.js';
import { newAutomaton } from './automaton.js';
import { GuideError } from './grammar.js';
import type { ReadingReply, ReadingRequest } from './guide-messages.js';
import { readGuide } from './read-guide.js';

/** Reads a guide and makes its automaton; never throws. */
export function compileGuide({ key, guide }: ReadingRequest): ReadingReply {
  try {
    return { key, automaton: newAutomaton(readGuide(guide)), error: '', isInvalid: false };
  } catch (error) {
    const message = messageOf(error);
    return { key, automaton: null, error: message, isInvalid: error instanceof GuideError };
  }
}
