/** The beginning of arguments {"input": "..."}, up to the text itself. */
const BEGIN = /^\s*\{\s*"input"\s*:\s*"/;
/** The same without white space. */
const WRITTEN = '{"input":"';
/** Characters within which the text begins; arguments whose text does not are of another form. */
const MAX_BEGIN = 256;

const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Takes the input of a custom tool out of a call's arguments as they come:
 *
 *   {"input": "a\n      ->  a⏎
 *   b\u00             ->  b            (an escape waits until it is whole, half a character for its other half)
 *   e9"}              ->  é
 *
 * Arguments of another form are the input themselves, once they have ended. The result does not depend on how they are
 * cut.
 */
export class StreamedInput {
  /** The input so far. */
  text = '';
  #state: 'before' | 'inside' | 'behind' | 'otherwise' = 'before';
  /** Arguments that are not read yet. */
  #unread = '';

  /** Takes more of the arguments. @returns more of the input; '' where none is known yet. */
  push(more: string): string {
    if (this.#state === 'behind') return '';
    this.#unread += more;
    if (this.#state === 'before') this.#begin();
    return this.#state === 'inside' ? this.#add(this.#read()) : '';
  }

  /** Ends the arguments. @param isCut true where more of them would have come. @returns the rest of the input. */
  end(isCut = false): string {
    if (isCut && this.#state === 'before' && this.#mayBegin()) return '';
    const isOther = this.#state === 'before' || this.#state === 'otherwise';
    return isOther ? this.#add(inputOf(this.#unread)) : '';
  }

  #begin(): void {
    const found = BEGIN.exec(this.#unread);
    if (found !== null) {
      this.#unread = this.#unread.slice(found[0].length);
      this.#state = 'inside';
    } else if (this.#unread.length > MAX_BEGIN) this.#state = 'otherwise';
  }

  /** True where what has come may be the beginning in front of the text, which is not part of the input. */
  #mayBegin(): boolean {
    return WRITTEN.startsWith(this.#unread.replaceAll(/\s/g, ''));
  }

  #add(more: string): string {
    this.text += more;
    return more;
  }

  /** Reads to the end of the text, or as far as it can be read. */
  #read(): string {
    const source = this.#unread;
    let read = '';
    let at = 0;
    while (at < source.length) {
      const char = source[at]!;
      if (char === '"') {
        this.#state = 'behind';
        break;
      }
      const found = char === '\\' ? escapeAt(source, at) : { text: char, length: 1 };
      if (found === null) break;
      read += found.text;
      at += found.length;
    }
    this.#unread = source.slice(at);
    return read;
  }
}

/** The escape at a place; null: it is not whole yet. */
function escapeAt(source: string, at: number): { text: string; length: number } | null {
  const kind = source[at + 1];
  if (kind === undefined) return null;
  if (kind !== 'u') return { text: ESCAPED[kind] ?? kind, length: 2 };
  const unit = unitAt(source, at);
  if (unit === null) return null;
  if (unit === 'wrong') return { text: kind, length: 2 };
  const isHigh = unit >= 0xd800 && unit < 0xdc00;
  if (!isHigh)
    return { text: unit >= 0xdc00 && unit < 0xe000 ? '\ufffd' : String.fromCharCode(unit), length: 6 };
  const behind = source.slice(at + 6, at + 8);
  if (!'\\u'.startsWith(behind)) return { text: '\ufffd', length: 6 };
  const low = behind.length < 2 ? null : unitAt(source, at + 6);
  if (low === null) return null;
  const isLow = low !== 'wrong' && low >= 0xdc00 && low < 0xe000;
  return isLow ? { text: String.fromCharCode(unit, low), length: 12 } : { text: '\ufffd', length: 6 };
}

/** The unit of a \uXXXX at a place; null: it is not whole yet. */
function unitAt(source: string, at: number): number | 'wrong' | null {
  const digits = source.slice(at + 2, at + 6);
  if (!/^[0-9a-fA-F]*$/.test(digits)) return 'wrong';
  return digits.length < 4 ? null : Number.parseInt(digits, 16);
}

/** The input in whole arguments; the arguments themselves where they have none. */
function inputOf(args: string): string {
  try {
    const { input } = JSON.parse(args) as { input?: unknown };
    return typeof input === 'string' ? input : args;
  } catch {
    return args;
  }
}
