import { JsonScanner } from './json-scanner.js';

/** What a character has led to. `call` and `args` are said once the name and the beginning of the arguments are known. */
export interface CallStep {
  /** `invalid`: the character is none of a call's. `broken`: the call was said, and its arguments turn out to be no JSON. */
  state: 'more' | 'done' | 'invalid' | 'broken';
  /** The call's name, in the step in which it is certain that this is a call. */
  call?: string;
  /** More text of its arguments. */
  args?: string;
}

const ARGUMENT_KEYS: ReadonlySet<string> = new Set(['arguments', 'parameters']);
/** What else models write into a call. */
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
 * The arguments are given out as they come, once their first character behind the brace is right. What is not such an object
 * is invalid as soon as that shows. It is for the caller to say what becomes of that.
 */
export class CallReader {
  readonly #needsArguments: boolean;
  readonly #isName: (name: string) => boolean;
  #phase: 'open' | 'key-or-end' | 'key' | 'colon' | 'value' | 'comma-or-end' = 'open';
  #scanner = new JsonScanner();
  #key = '';
  /** The key or value so far. */
  #raw = '';
  #name: string | null = null;
  #arguments: string | null = null;
  #isSaid = false;
  #streams = false;

  /** @param needsArguments false: a call may do without, and then has none. @param isName which names are those of calls. */
  constructor(options: { needsArguments: boolean; isName: (name: string) => boolean }) {
    this.#needsArguments = options.needsArguments;
    this.#isName = options.isName;
  }

  /** A reader of calls of any name, which may do without arguments. */
  static ofAny(): CallReader {
    return new CallReader({ needsArguments: false, isName: () => true });
  }

  /** The same where the format has written the name in front: what comes next are the arguments. */
  static behindName(name: string): CallReader {
    const reader = CallReader.ofAny();
    for (const character of `{"name":${JSON.stringify(name)},"arguments":`) reader.step(character);
    return reader;
  }

  /** The name and arguments were given out. */
  get isSaid(): boolean {
    return this.#isSaid;
  }

  /** All of its arguments were given out. */
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

  /** The arguments of a call whose name is known have got as far as the first key. */
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

/** The JSON text of an object, which may be written as a text; null: it is none. */
function objectText(raw: string): string | null {
  const value: unknown = JSON.parse(raw);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return raw;
  if (value === null) return '{}';
  if (typeof value !== 'string') return null;
  try {
    const inner: unknown = JSON.parse(value);
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? value : null;
  } catch {
    return null;
  }
}
