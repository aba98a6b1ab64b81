import type { CallStep } from './call-reader.js';
import { PartList } from './part-list.js';
import type { AnswerParser, AnswerPart } from './types.js';

/**
 * Common part of the parsers of all formats. White space around and between calls belongs to the format and not to the
 * answer, so it is held back until the next text is known.
 */
export abstract class CallTextParser implements AnswerParser {
  readonly #parts = new PartList();
  #space = '';
  #isBehindCall = false;

  push(text: string): AnswerPart[] {
    this.read(text);
    return this.#parts.take();
  }

  get held(): number {
    return this.#space.length + this.undecided;
  }

  end(): AnswerPart[] {
    this.finish();
    this.flushSpace();
    return this.#parts.take();
  }

  /** Takes one UTF-16 unit. */
  protected abstract step(character: string): void;
  /**
   * Number of units after all content and white space so far that are content if they prove to be no call.
   */
  protected abstract get undecided(): number;
  /** Handles the end of the text: text held back is content. */
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

  /** Gives out the white space at the end of content, where something follows that is no call. */
  protected flushSpace(): void {
    if (!this.#isBehindCall) this.#parts.add('content', this.#space);
    this.#space = '';
  }

  /** Handles text that proved to be no call, of which one unit at least is content. The rest may contain the beginning of one. */
  protected readAgain(text: string): void {
    this.content(text.charAt(0));
    this.read(text.slice(1));
  }

  protected read(text: string): void {
    for (let i = 0; i < text.length; i++) this.step(text.charAt(i));
  }

  protected reasoning(text: string): void {
    this.#parts.add('reasoning', text);
  }

  protected args(text: string): void {
    this.#parts.add('arguments', text);
  }

  /** Reports the parts of a CallReader's step. */
  protected say({ call, args }: CallStep): void {
    if (call !== undefined) this.call(call);
    if (args !== undefined) this.args(args);
  }
}
