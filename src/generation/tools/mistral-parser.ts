import { CallReader } from './call-reader.js';
import { CallTextParser } from './call-text-parser.js';
import { MarkerFinder } from './marker-finder.js';

export const TOOL_CALLS = '[TOOL_CALLS]';
export const CALL_ID = '[CALL_ID]';
export const ARGS = '[ARGS]';

const HEAD = /^([\w.:/-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]\s*)?$/;
const MAX_HEAD_LENGTH = 400;

/**
 * Calls as Mistral's models write them, in their older and their newer forms:
 *
 *   [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
 *   [TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[CALL_ID]aB3dE5gH7[ARGS]{}
 */
export class MistralParser extends CallTextParser {
  readonly #finder = new MarkerFinder([TOOL_CALLS]);
  #state: 'text' | 'head' | 'name' | 'list' | 'call' | 'broken' = 'text';
  #reader = CallReader.ofAny();
  /** True for a call within a list, false for one that follows its name. */
  #isInList = false;
  #raw = '';
  #name = '';

  protected step(character: string): void {
    switch (this.#state) {
      case 'text': {
        const { text, marker } = this.#finder.step(character);
        this.content(text);
        if (marker !== null) this.#open(marker);
        break;
      }
      case 'head':
        this.#atHead(character);
        break;
      case 'name':
        this.#inName(character);
        break;
      case 'list':
        this.#inList(character);
        break;
      case 'call':
        this.#inCall(character);
        break;
      case 'broken':
        this.args(character);
    }
  }

  #open(marker: string): void {
    this.#state = 'head';
    this.#isInList = false;
    this.#raw = marker;
    this.#name = '';
  }

  #atHead(character: string): void {
    if (/\s/.test(character)) {
      this.#raw += character;
    } else if (character === '[') {
      this.#raw += character;
      this.#isInList = true;
      this.#state = 'list';
    } else if (character === '{') this.#begin(character);
    else if (/[\w.:/-]/.test(character)) {
      this.#state = 'name';
      this.#inName(character);
    } else this.#fail(character);
  }

  #inName(character: string): void {
    if (character !== '{') {
      this.#name += character;
      if (this.#name.length > MAX_HEAD_LENGTH || !/^[\w.:/[\] -]$/.test(character)) {
        this.#fail(character);
        return;
      }
      this.#raw += character;
      return;
    }
    const head = HEAD.exec(this.#name);
    if (head === null) {
      this.#fail(character);
      return;
    }
    this.#reader = CallReader.behindName(head[1]!);
    this.#state = 'call';
    this.#inCall(character);
  }

  #inList(character: string): void {
    if (character === '{') this.#begin(character);
    else if (character === ']') {
      // An empty list is no call; after calls the bracket belongs to the format.
      if (this.#raw !== '') this.content(this.#raw + character);
      this.#raw = '';
      this.#state = 'text';
    } else if (/[\s,]/.test(character)) this.#raw += this.#raw === '' ? '' : character;
    else this.#fail(character);
  }

  #begin(character: string): void {
    this.#reader = CallReader.ofAny();
    this.#state = 'call';
    this.#inCall(character);
  }

  #fail(character: string): void {
    this.content(this.#raw);
    this.#raw = '';
    this.#state = 'text';
    this.step(character);
  }

  #inCall(character: string): void {
    const said = this.#reader.step(character);
    if (said.state === 'invalid') {
      this.#fail(character);
      return;
    }
    this.#raw += character;
    this.say(said);
    if (this.#reader.isSaid) this.#raw = '';
    if (said.state === 'broken') {
      this.#state = 'broken';
      this.args(character);
    }
    if (this.#isInList) {
      if (said.state === 'done') this.#state = 'list';
    } else if (said.state === 'done' || (this.#name !== '' && this.#reader.isComplete)) this.#state = 'text';
  }

  protected get undecided(): number {
    return this.#raw.length + this.#finder.held;
  }

  protected finish(): void {
    this.content(this.#raw + this.#finder.flush());
  }
}
