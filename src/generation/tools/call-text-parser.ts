import type { CallStep } from './call-reader.js';
import { PartList } from './part-list.js';
import type { AnswerParser, AnswerPart } from './types.js';

/**
 * What the parsers of all formats share. White space between text and calls, and between calls, is the format's and not the
 * answer's, so white space is held back until it is known what follows it.
 */
export abstract class CallTextParser implements AnswerParser {
  readonly #parts = new PartList();
  #space = '';
  #isBehindCall = false;

  push(text: string): AnswerPart[] {
    for (let i = 0; i < text.length; i++) this.step(text.charAt(i));
    return this.#parts.take();
  }

  end(): AnswerPart[] {
    this.finish();
    if (!this.#isBehindCall) this.#parts.add('content', this.#space);
    this.#space = '';
    return this.#parts.take();
  }

  /** Takes one UTF-16 unit. */
  protected abstract step(character: string): void;
  /** The text has ended: what was held back is content. */
  protected abstract finish(): void;

  protected content(text: string): void {
    const end = text.trimEnd().length;
    if (end > 0) {
      this.#parts.add('content', this.#space + text.slice(0, end));
      this.#space = '';
      this.#isBehindCall = false;
    }
    this.#space += text.slice(end);
  }

  protected call(name: string): void {
    this.#space = '';
    this.#isBehindCall = true;
    this.#parts.addCall(name);
  }

  protected args(text: string): void {
    this.#parts.add('arguments', text);
  }

  /** What a step of a CallReader says. */
  protected say({ call, args }: CallStep): void {
    if (call !== undefined) this.call(call);
    if (args !== undefined) this.args(args);
  }
}
