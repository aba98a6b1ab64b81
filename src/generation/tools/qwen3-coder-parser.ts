import { CallTextParser } from './call-text-parser.js';
import { HERMES_BEGIN, HERMES_END } from './hermes-parser.js';
import { MarkerFinder } from './marker-finder.js';
import { isOneOf, typesOfParameter } from './parameter-types.js';
import { PythonValue } from './python-value.js';
import type { FunctionTool } from './types.js';

export const FUNCTION_BEGIN = '<function=';
export const FUNCTION_END = '</function>';
export const PARAMETER_BEGIN = '<parameter=';
export const PARAMETER_END = '</parameter>';

const NAME = /^[\w.:/-]{1,128}$/;
const MAX_KEY_LENGTH = 256;

/**
 * Calls as Qwen3-Coder and others write them, each argument in a tag of its own, its value as it is:
 *
 *   Let me look. <tool_call>
 *   <function=f>
 *   <parameter=city>
 *   Paris
 *   </parameter>
 *   </function>
 *   </tool_call>
 *
 * Only the function's parameters determine whether a value is a text or JSON. A text is given out as it
 * comes, JSON when it is whole. The outer tag may be missing.
 */
export class Qwen3CoderParser extends CallTextParser {
  readonly #tools: ReadonlyMap<string, FunctionTool>;
  readonly #outside = new MarkerFinder([HERMES_BEGIN, FUNCTION_BEGIN]);
  readonly #inCall = new MarkerFinder([PARAMETER_BEGIN, FUNCTION_END, HERMES_END]);
  // A model that forgets to close an argument begins the next one, or closes the function.
  readonly #inValue = new MarkerFinder([PARAMETER_END, PARAMETER_BEGIN, FUNCTION_END]);
  readonly #behindCall = new MarkerFinder([HERMES_END, FUNCTION_BEGIN]);
  #state: 'text' | 'opened' | 'name' | 'parameters' | 'key' | 'value' | 'behind' = 'text';
  /** Text that may be part of a call, and is content if there is none. */
  #raw = '';
  #function = '';
  #key = '';
  #value: ArgumentValue | null = null;
  #hasArguments = false;

  constructor(tools: readonly FunctionTool[]) {
    super();
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  protected step(character: string): void {
    switch (this.#state) {
      case 'text': {
        const { text, marker } = this.#outside.step(character);
        this.content(text);
        if (marker === null) break;
        this.#raw = marker;
        this.#open(marker === HERMES_BEGIN ? 'opened' : 'name');
        break;
      }
      case 'opened':
        this.#inOpened(character);
        break;
      case 'name':
        this.#inName(character);
        break;
      case 'parameters': {
        const { marker } = this.#inCall.step(character);
        if (marker !== null) this.#atMarker(marker);
        break;
      }
      case 'key':
        this.#inKey(character);
        break;
      case 'value': {
        const { text, marker } = this.#inValue.step(character);
        this.args(this.#value!.push(text));
        if (marker !== null) this.#endValue(marker);
        break;
      }
      case 'behind':
        this.#inBehind(character);
    }
  }

  #open(state: 'opened' | 'name'): void {
    this.#state = state;
    this.#function = '';
  }

  /** Handles a character after the outer tag: white space, then a function. */
  #inOpened(character: string): void {
    this.#raw += character;
    const begun = this.#raw.slice(HERMES_BEGIN.length).trimStart();
    if (begun === FUNCTION_BEGIN) this.#open('name');
    else if (!FUNCTION_BEGIN.startsWith(begun)) this.#fail();
  }

  #inName(character: string): void {
    this.#raw += character;
    if (character !== '>') {
      this.#function += character;
      if (!NAME.test(this.#function)) this.#fail();
      return;
    }
    if (this.#function === '') {
      this.#fail();
      return;
    }
    this.#raw = '';
    this.#hasArguments = false;
    this.call(this.#function);
    this.args('{');
    this.#state = 'parameters';
  }

  #fail(): void {
    const text = this.#raw;
    this.#raw = '';
    this.#state = 'text';
    this.readAgain(text);
  }

  #atMarker(marker: string): void {
    if (marker === PARAMETER_BEGIN) {
      this.#state = 'key';
      this.#key = '';
      return;
    }
    this.args('}');
    this.#state = marker === FUNCTION_END ? 'behind' : 'text';
  }

  #inKey(character: string): void {
    if (character !== '>' && this.#key.length < MAX_KEY_LENGTH) {
      this.#key += character;
      return;
    }
    const tool = this.#tools.get(this.#function);
    this.args(`${this.#hasArguments ? ', ' : ''}${JSON.stringify(this.#key)}: `);
    this.#hasArguments = true;
    this.#value = argumentValue(tool === undefined ? null : typesOfParameter(tool, this.#key));
    this.#state = 'value';
  }

  #endValue(marker: string): void {
    this.args(this.#value!.end());
    this.#value = null;
    this.#state = 'parameters';
    if (marker !== PARAMETER_END) this.#atMarker(marker);
  }

  #inBehind(character: string): void {
    const { text, marker } = this.#behindCall.step(character);
    if (marker !== null) {
      this.#raw = marker;
      if (marker === HERMES_END) this.#state = 'text';
      else this.#open('name');
      return;
    }
    if (text.trim() === '') return;
    this.#state = 'text';
    this.read(text + this.#behindCall.flush());
  }

  protected get undecided(): number {
    if (this.#state === 'text') return this.#outside.held;
    if (this.#state === 'behind') return this.#behindCall.held;
    return this.#state === 'opened' || this.#state === 'name' ? this.#raw.length : 0;
  }

  protected finish(): void {
    if (this.#state === 'text') this.content(this.#outside.flush());
    if (this.#state === 'opened' || this.#state === 'name') this.content(this.#raw);
    // A cut call keeps the arguments read so far; a cut marker is no text of the answer.
  }
}

/** Converts an argument's value to JSON. The line breaks around the value belong to the format. */
interface ArgumentValue {
  push(text: string): string;
  end(): string;
}

function argumentValue(types: ReadonlySet<string> | null): ArgumentValue {
  const isText = types !== null && types.size === 1 && types.has('string');
  return isText ? new TextValue() : new JsonValue(types);
}

class TextValue implements ArgumentValue {
  #isBegun = false;
  /** Text held back: the first line break, one that may be the last, half a character. */
  #held = '';

  push(text: string): string {
    if (text === '') return '';
    const all = this.#held + text;
    const from = this.#isBegun || !all.startsWith('\n') ? 0 : 1;
    const isHalf = /[\ud800-\udbff]$/.test(all);
    const to = all.length - (isHalf || all.endsWith('\n') ? 1 : 0);
    const begin = this.#isBegun ? '' : '"';
    this.#isBegun = true;
    this.#held = all.slice(Math.max(from, to));
    return begin + escaped(all.slice(from, Math.max(from, to)));
  }

  end(): string {
    const rest = this.#held === '\n' ? '' : this.#held;
    return `${this.#isBegun ? '' : '"'}${escaped(rest)}"`;
  }
}

const escaped = (text: string) => JSON.stringify(text).slice(1, -1);

class JsonValue implements ArgumentValue {
  readonly #types: ReadonlySet<string> | null;
  #text = '';

  constructor(types: ReadonlySet<string> | null) {
    this.#types = types;
  }

  push(text: string): string {
    this.#text += text;
    return '';
  }

  end(): string {
    const text = this.#text.replace(/^\n/, '').replace(/\n$/, '');
    const types = this.#types;
    // Models also write True for true, and TRUE.
    for (const json of [
      text.trim(),
      asPython(text.trim()),
      types === null ? null : text.trim().toLowerCase(),
    ]) {
      const value = json === null ? undefined : parsed(json);
      if (value === undefined || typeof value === 'string') continue;
      if (types === null || isOneOf(value, types)) return json!;
    }
    return JSON.stringify(text);
  }
}

/** JSON of a Python literal; null: it is not a literal. */
function asPython(text: string): string | null {
  const reader = new PythonValue();
  let json = '';
  // A number or a word ends only where another token begins.
  for (const unit of `${text}\n`.split('')) {
    const { scan, json: more } = reader.step(unit);
    json += more;
    if (scan === 'invalid') return null;
    if (scan !== 'more') return parsed(json) === undefined ? null : json;
  }
  return null;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}
