import { PartList } from '../tools/part-list.js';
import type { AnswerParser, AnswerPart } from '../tools/types.js';

/**
 * Reads messages whose content may have calls in it, where a text and not the template has told the model of functions: it then
 * writes calls as that text asks for.
 */
export class TextCallsParser implements AnswerParser {
  readonly #messages: AnswerParser;
  readonly #calls: AnswerParser;

  constructor(messages: AnswerParser, calls: AnswerParser) {
    this.#messages = messages;
    this.#calls = calls;
  }

  get held(): number {
    return this.#messages.held + this.#calls.held;
  }

  push(text: string): AnswerPart[] {
    return this.#read(this.#messages.push(text));
  }

  end(): AnswerPart[] {
    return [...this.#read(this.#messages.end()), ...this.#calls.end()];
  }

  #read(parts: readonly AnswerPart[]): AnswerPart[] {
    const read = new PartList();
    for (const part of parts) read.append(part.type === 'content' ? this.#calls.push(part.text) : [part]);
    return read.take();
  }
}
