import { CallReader } from './call-reader.js';
import { CallTextParser } from './call-text-parser.js';
import { MarkerFinder } from './marker-finder.js';

export const PYTHON_TAG = '<|python_tag|>';

/**
 * Calls as Llama 3 writes them: an answer without other text, or the text after the tag.
 *
 *   {"name": "f", "parameters": {"a": 1}}; {"name": "g", "parameters": {}}
 *   <|python_tag|>{"name": "f", "parameters": {"a": 1}}
 *
 * Without the tag a JSON object is a call only where it names a known function.
 */
export class Llama3Parser extends CallTextParser {
  readonly #names: ReadonlySet<string>;
  readonly #tagFinder = new MarkerFinder([PYTHON_TAG]);
  #state: 'before' | 'text' | 'call' | 'broken' = 'before';
  #reader: CallReader | null = null;
  /** Text that may be part of a call, and is content if there is none. */
  #raw = '';
  #hasTag = false;
  #isBehindCall = false;

  constructor(names: ReadonlySet<string>) {
    super();
    this.#names = names;
  }

  protected step(character: string): void {
    switch (this.#state) {
      case 'before':
      case 'text': {
        const { text, marker } = this.#tagFinder.step(character);
        for (const unit of text.split('')) this.#outside(unit);
        if (marker !== null) this.#atTag(marker);
        break;
      }
      case 'call':
        this.#inCall(character);
        break;
      case 'broken':
        this.args(character);
    }
  }

  #atTag(tag: string): void {
    this.#raw += tag;
    this.#hasTag = true;
    this.#state = 'before';
  }

  /** Handles a character in front of a call, or of text. */
  #outside(character: string): void {
    if (this.#state === 'text') {
      this.content(character);
    } else if (character === '{') {
      const isName = (name: string) => this.#hasTag || this.#names.has(name);
      this.#reader = new CallReader({ needsArguments: true, isName });
      this.#state = 'call';
      this.#inCall(character);
    } else if (/\s/.test(character) || (this.#isBehindCall && /[;,]/.test(character))) {
      this.#raw += character;
    } else this.#toText(character);
  }

  #toText(character: string): void {
    this.#state = 'text';
    this.content(this.#raw + character);
    this.#raw = '';
  }

  #inCall(character: string): void {
    const reader = this.#reader!;
    const said = reader.step(character);
    if (said.state === 'invalid') {
      if (!reader.isSaid) this.content(this.#raw);
      this.#raw = '';
      this.#state = 'text';
      this.step(character);
      return;
    }
    this.#raw += character;
    this.say(said);
    if (reader.isSaid) this.#raw = '';
    if (said.state === 'broken') {
      this.#state = 'broken';
      this.args(character);
    }
    if (said.state === 'done') {
      this.#state = 'before';
      this.#isBehindCall = true;
    }
  }

  protected get undecided(): number {
    return this.#raw.length + this.#tagFinder.held;
  }

  protected finish(): void {
    // Separators after the last call belong to the format.
    const isOnlySeparators = this.#isBehindCall && /^[\s;,]*$/.test(this.#raw);
    this.content((isOnlySeparators ? '' : this.#raw) + this.#tagFinder.flush());
  }
}
