import type { AnswerParser, AnswerPart } from './types.js';

/**
 * Reads an answer that has to be calls. What another parser takes for content is then the beginning of a call that a limit has cut, or what a
 * format writes between calls: markup, and no text for a reader.
 */
export class CallsOnlyParser implements AnswerParser {
  readonly #calls: AnswerParser;
  readonly held = 0;

  constructor(calls: AnswerParser) {
    this.#calls = calls;
  }

  push(text: string): AnswerPart[] {
    return withoutContent(this.#calls.push(text));
  }

  end(): AnswerPart[] {
    return withoutContent(this.#calls.end());
  }
}

function withoutContent(parts: readonly AnswerPart[]): AnswerPart[] {
  return parts.filter(({ type }) => type !== 'content');
}
