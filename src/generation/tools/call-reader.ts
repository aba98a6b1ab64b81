import { isObject } from '../../../base/option-values.js';
import { JsonScanner } from './json-scanner.js';

/** Result of one character. `call` and `args` are set once the name and the beginning of the arguments are known. */
export interface CallStep {
  /** `invalid`: the character belongs to no call. `broken`: the call was reported, and its arguments are no JSON. */
  state: 'more' | 'done' | 'invalid' | 'broken';
  /** Name of the call, in the step that makes certain that this is a call. */
  call?: string;
  /** Further text of the call's arguments. */
  args?: string;
}

const ARGUMENT_KEYS: ReadonlySet<string> = new Set(['arguments', 'parameters']);
/** Other keys that models write into a call. */
const OTHER_KEYS: ReadonlySet<string> = new Set(['name', 'type', 'id']);
const MAX_KEY_LENGTH = 32;
const SPACE = /^\s$/;
const MORE: CallStep = { state: 'more' };
const INVALID: CallStep = { state: 'invalid' };

/**
 * Reads a call that is a JSON object, keys in any order, character by character:
 *
 *   {"name": "f", "arguments": {"a": 1}}        `arguments` or `parameters`; an object, or its JSON as a text
 *
 * Arguments are given out as they come, once their first character after the brace is right. Any other text
 * is invalid as soon as that shows; the caller decides what to do with it.
 */
export class CallReader {
  readonly #needsArguments: boolean;
  readonly #isName: (name: string) => boolean;
  #phase: 'open' | 'key-or-end' | 'key' | 'colon' | 'value' | 'comma-or-end' = 'open';
  #scanner = new JsonScanner();
  #key = '';
  /** Text of the present key or value so far. */
  #raw = '';
  #name: string | null = null;
  #arguments: string | null = null;
  #isSaid = false;
  #streams = false;

  /**
   * @param needsArguments false: a call may lack arguments, and then has none. @param isName true for the
   * names of calls.
   */
  constructor(options: { needsArguments: boolean; isName: (name: string) => boolean }) {
    this.#needsArguments = options.needsArguments;
    this.#isName = options.isName;
  }

  /** A reader of calls with any name, which may lack arguments. */
  static ofAny(): CallReader {
    return new CallReader({ needsArguments: false, isName: () => true });
  }

  /** A reader of the arguments alone, for formats that write the name in front. */
  static behindName(name: string): CallReader {
    const reader = CallReader.ofAny();
    for (const character of `{"name":${JSON.stringify(name)},"arguments":`) reader.step(character);
    return reader;
  }

  /** True once the name and arguments were given out. */
  get isSaid(): boolean {
    return this.#isSaid;
  }

  /** True once all arguments were given out. */
  get isComplete(): boolean {
    return this.#isSaid && !this.#streams;
  }

  step(character: string): CallStep {
    switch (this.#phase) {
      case 'open':
        return this.#expect(character, '{', 'key-or-end');
      case 'colon':
        return this.#expect(character, ':', 'value');
      case 'key-or-end':
        if (character === '}') return this.#end();
        if (SPACE.test(character)) return MORE;
        this.#phase = 'key';
        this.#begin();
        return character === '"' ? this.#inKey(character) : INVALID;
      case 'key':
        return this.#inKey(character);
      case 'value':
        return this.#inValue(character);
      case 'comma-or-end':
        if (character === '}') return this.#end();
        return this.#expect(character, ',', 'key-or-end');
    }
  }

  #expect(character: string, wanted: string, next: 'key-or-end' | 'value'): CallStep {
    if (SPACE.test(character)) return MORE;
    if (character !== wanted) return INVALID;
    this.#phase = next;
    this.#begin();
    return MORE;
  }

  #begin(): void {
    this.#scanner = new JsonScanner();
    this.#raw = '';
  }

  #inKey(character: string): CallStep {
    this.#raw += character;
    const scan = this.#scanner.step(character);
    if (scan === 'invalid' || this.#raw.length > MAX_KEY_LENGTH) return INVALID;
    if (scan === 'more') return MORE;
    this.#key = JSON.parse(this.#raw) as string;
    if (!ARGUMENT_KEYS.has(this.#key) && !OTHER_KEYS.has(this.#key)) return INVALID;
    if (ARGUMENT_KEYS.has(this.#key) && this.#arguments !== null) return INVALID;
    if (this.#key === 'name' && this.#name !== null) return INVALID;
    this.#phase = 'colon';
    return MORE;
  }

  #inValue(character: string): CallStep {
    if (this.#raw === '' && SPACE.test(character)) return MORE;
    const scan = this.#scanner.step(character);
    if (scan === 'behind') {
      const ended = this.#valueEnded();
      return ended.state === 'more' ? this.step(character) : ended;
    }
    if (scan === 'invalid') return this.#streams ? { state: 'broken' } : INVALID;
    this.#raw += character;
    if (scan === 'last') return this.#valueEnded();
    if (this.#streams) return { state: 'more', args: character };
    return this.#mayStream(character) ? this.#say() : MORE;
  }

  /** True where the arguments of a call with a known name have reached the first key. */
  #mayStream(character: string): boolean {
    const isBegun = ARGUMENT_KEYS.has(this.#key) && this.#name !== null && this.#raw.startsWith('{');
    return isBegun && this.#raw.length > 1 && !SPACE.test(character);
  }

  #say(): CallStep {
    this.#isSaid = true;
    this.#streams = true;
    return { state: 'more', call: this.#name!, args: this.#raw };
  }

  #valueEnded(): CallStep {
    this.#phase = 'comma-or-end';
    const last = this.#raw.at(-1)!;
    if (this.#streams) {
      this.#streams = false;
      this.#arguments = this.#raw;
      return { state: 'more', args: last };
    }
    if (this.#key === 'name') {
      const name: unknown = JSON.parse(this.#raw);
      if (typeof name !== 'string' || name === '' || !this.#isName(name)) return INVALID;
      this.#name = name;
    } else if (ARGUMENT_KEYS.has(this.#key)) {
      this.#arguments = objectText(this.#raw);
      if (this.#arguments === null) return INVALID;
    } else return MORE;
    if (this.#name === null || this.#arguments === null) return MORE;
    this.#isSaid = true;
    return { state: 'more', call: this.#name, args: this.#arguments };
  }

  #end(): CallStep {
    if (this.#isSaid) return { state: 'done' };
    if (this.#name === null || this.#needsArguments) return INVALID;
    this.#isSaid = true;
    return { state: 'done', call: this.#name, args: '{}' };
  }
}

/** The object that a text is the JSON of, such as the arguments of a call; null: it is no object. */
export function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** JSON text of an object, which may itself be written as a text; null: it is no object. */
function objectText(raw: string): string | null {
  const value: unknown = JSON.parse(raw);
  if (isObject(value)) return raw;
  if (value === null) return '{}';
  return typeof value === 'string' && objectOf(value) !== null ? value : null;
}
