import { CallTextParser } from './call-text-parser.js';
import { PythonValue } from './python-value.js';

const NAME = /^[A-Za-z_][\w.-]*$/;
const SPACE = /^\s$/;

/**
 * Calls as Llama 3.2 and Llama 4 write them, in an answer without other text:
 *
 *   [f(a=1, b="x"), g()]
 *
 * It is a call only where it names a known function. The arguments are written as the JSON of an object, as they come.
 */
export class PythonicParser extends CallTextParser {
  readonly #names: ReadonlySet<string>;
  #state: 'before' | 'name' | 'keyword' | 'value' | 'behind-value' | 'behind-call' | 'broken' | 'text' =
    'before';
  #value = new PythonValue();
  /** Text that is content if it proves to be no call. */
  #raw = '';
  #name = '';
  #keyword = '';
  #numArguments = 0;

  constructor(names: ReadonlySet<string>) {
    super();
    this.#names = names;
  }

  protected step(character: string): void {
    switch (this.#state) {
      case 'text':
        this.content(character);
        return;
      case 'broken':
        this.args(character);
        return;
      case 'before':
        this.#before(character);
        break;
      case 'name':
        this.#inName(character);
        break;
      case 'keyword':
        this.#inKeyword(character);
        break;
      case 'value':
        this.#inValue(character);
        break;
      case 'behind-value':
        if (character === ')') this.#endCall('}');
        else if (character === ',') this.#beginKeyword();
        else if (!SPACE.test(character)) this.#fail(character);
        break;
      case 'behind-call':
        this.#behindCall(character);
    }
  }

  #before(character: string): void {
    this.#raw += character;
    if (character === '[') this.#beginName();
    else if (!SPACE.test(character)) this.#giveUp();
  }

  #beginName(): void {
    this.#state = 'name';
    this.#name = '';
  }

  #inName(character: string): void {
    this.#raw += character;
    if (character === '(' && this.#names.has(this.#name)) {
      this.#numArguments = 0;
      this.#beginKeyword();
      return;
    }
    if (SPACE.test(character) && this.#name === '') return;
    this.#name += character;
    if (!NAME.test(this.#name)) this.#giveUp();
  }

  #beginKeyword(): void {
    this.#state = 'keyword';
    this.#keyword = '';
  }

  #inKeyword(character: string): void {
    if (this.#numArguments === 0) this.#raw += character;
    if (SPACE.test(character)) return;
    if (character === ')' && this.#keyword === '') {
      if (this.#numArguments === 0) this.call(this.#name);
      this.#endCall(this.#numArguments === 0 ? '{}' : '}');
    } else if (character === '=' && NAME.test(this.#keyword)) {
      this.#beginValue();
    } else if (NAME.test(this.#keyword + character)) {
      this.#keyword += character;
    } else if (this.#numArguments === 0) this.#giveUp();
    else this.#fail(`${this.#keyword}${character}`);
  }

  #beginValue(): void {
    if (this.#numArguments === 0) {
      this.call(this.#name);
      this.#raw = '';
    }
    this.args(`${this.#numArguments++ === 0 ? '{' : ', '}${JSON.stringify(this.#keyword)}: `);
    this.#value = new PythonValue();
    this.#state = 'value';
  }

  #inValue(character: string): void {
    const { scan, json } = this.#value.step(character);
    this.args(json);
    if (scan === 'invalid') this.#fail(character);
    if (scan === 'last' || scan === 'behind') this.#state = 'behind-value';
    if (scan === 'behind') this.step(character);
  }

  #endCall(json: string): void {
    this.args(json);
    this.#raw = '';
    this.#state = 'behind-call';
  }

  #behindCall(character: string): void {
    if (character === ',') {
      this.#raw = character;
      this.#beginName();
    } else if (character === ']') this.#state = 'text';
    else if (!SPACE.test(character)) {
      this.#raw = character;
      this.#giveUp();
    }
  }

  /** Handles text that is no call; nothing of it was reported as one. */
  #giveUp(): void {
    this.#state = 'text';
    this.content(this.#raw);
    this.#raw = '';
  }

  /** Handles a reported call whose text is broken: the rest goes to its arguments. */
  #fail(text: string): void {
    this.#state = 'broken';
    this.args(text);
  }

  protected get undecided(): number {
    return this.#raw.length;
  }

  protected finish(): void {
    this.content(this.#raw);
  }
}
