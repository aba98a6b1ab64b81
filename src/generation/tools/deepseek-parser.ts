import { CallReader } from './call-reader.js';
import { CallTextParser } from './call-text-parser.js';
import { MarkerFinder } from './marker-finder.js';

export const CALLS_BEGIN = '<｜tool▁calls▁begin｜>';
export const CALLS_END = '<｜tool▁calls▁end｜>';
export const CALL_BEGIN = '<｜tool▁call▁begin｜>';
export const CALL_END = '<｜tool▁call▁end｜>';
export const CALL_SEPARATOR = '<｜tool▁sep｜>';
export const FENCE = '```json';

const NAME = /^[\w.:/-]{1,128}$/;
const MAX_HEAD_LENGTH = 400;

/**
 * Calls as DeepSeek's models write them, V3 and R1 in the first form, V3.1 in the second:
 *
 *   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f
 *   ```json
 *   {"a": 1}
 *   ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
 *
 *   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
 */
export class DeepSeekParser extends CallTextParser {
  readonly #outside = new MarkerFinder([CALLS_BEGIN, CALL_BEGIN]);
  readonly #between = new MarkerFinder([CALL_BEGIN, CALLS_END]);
  readonly #end = new MarkerFinder([CALL_END, CALLS_END]);
  #state: 'text' | 'between' | 'head' | 'call' | 'broken' | 'behind' = 'text';
  #reader = CallReader.ofAny();
  /** Text that may be part of a call, and is content if there is none. */
  #raw = '';
  /** Text between the begin of a call and its arguments. */
  #head = '';

  protected step(character: string): void {
    switch (this.#state) {
      case 'text': {
        const { text, marker } = this.#outside.step(character);
        this.content(text);
        if (marker === CALLS_BEGIN) this.#state = 'between';
        if (marker === CALL_BEGIN) this.#open();
        if (marker !== null) this.#raw = marker;
        break;
      }
      case 'between':
        this.#inBetween(character);
        break;
      case 'head':
        this.#inHead(character);
        break;
      case 'call':
        this.#inCall(character);
        break;
      case 'broken': {
        const { text, marker } = this.#end.step(character);
        this.args(text);
        if (marker !== null) this.#state = marker === CALL_END ? 'between' : 'text';
        break;
      }
      case 'behind': {
        // This skips the end of the fence and any other text in front of the end.
        const { marker } = this.#end.step(character);
        if (marker !== null) this.#state = marker === CALL_END ? 'between' : 'text';
      }
    }
  }

  #open(): void {
    this.#state = 'head';
    this.#head = '';
  }

  #inBetween(character: string): void {
    this.#raw += character;
    const { text, marker } = this.#between.step(character);
    if (marker === CALL_BEGIN) this.#open();
    else if (marker === CALLS_END) {
      this.#raw = '';
      this.#state = 'text';
    } else if (text.trim() !== '') this.#fail();
  }

  #inHead(character: string): void {
    this.#raw += character;
    if (character !== '{') {
      this.#head += character;
      if (this.#head.length > MAX_HEAD_LENGTH) this.#fail();
      return;
    }
    const name = nameOf(this.#head);
    if (name === null) {
      this.#fail();
      return;
    }
    this.#reader = CallReader.behindName(name);
    this.#state = 'call';
    this.say(this.#reader.step(character));
  }

  #inCall(character: string): void {
    const said = this.#reader.step(character);
    if (said.state === 'invalid') {
      this.#raw += character;
      this.#fail();
      return;
    }
    this.#raw += character;
    this.say(said);
    if (this.#reader.isSaid) this.#raw = '';
    if (said.state === 'broken') {
      this.#state = 'broken';
      this.step(character);
    } else if (this.#reader.isComplete) this.#state = 'behind';
  }

  #fail(): void {
    const text = this.#raw + this.#between.flush();
    this.#raw = '';
    this.#state = 'text';
    this.readAgain(text);
  }

  protected get undecided(): number {
    if (this.#state === 'text') return this.#outside.held;
    return this.#state === 'broken' || this.#state === 'behind' ? 0 : this.#raw.length;
  }

  protected finish(): void {
    if (this.#state === 'text') this.content(this.#outside.flush());
    if (this.#state === 'broken') this.args(this.#end.flush());
    if (this.#state === 'head' || this.#state === 'call') this.content(this.#raw);
    // Only markers follow calls, and a cut marker is no text of the answer.
  }
}

/** Name of the function in `function<sep>f\n```json\n` or `f<sep>`; null for any other text. */
function nameOf(head: string): string | null {
  const [before, after, more] = head.split(CALL_SEPARATOR);
  if (before === undefined || after === undefined || more !== undefined) return null;
  const [name, fence] = after.split(FENCE);
  const called = after.trim() === '' ? before.trim() : fence?.trim() === '' ? name!.trim() : '';
  return NAME.test(called) ? called : null;
}
