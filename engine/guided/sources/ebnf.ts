import {
  ANY_CHARACTER,
  alt,
  type CodePoints,
  complement,
  EMPTY,
  type Expr,
  type Grammar,
  GuideError,
  normalized,
  repeat,
  rule,
  seq,
  text,
} from '../grammar.js';
import { spend } from '../reading-work.js';
import { MAX_REPETITION } from './regex-reader.js';

const MAX_DEPTH = 200;
const ESCAPES: Readonly<Record<string, number>> = {
  n: 10,
  r: 13,
  t: 9,
  f: 12,
  v: 11,
  b: 8,
  a: 7,
  '0': 0,
  e: 27,
};

/**
 * Reads a grammar in the EBNF of llama.cpp, vLLM and SGLang:
 *
 *   root   ::= item ("," item)*        # a comment
 *   item   ::= "\"" [^"\n]{1,20} "\"" | digit+ | .
 *   digit  ::= [0-9]
 *
 * A rule ends where the next one begins, so its alternatives may stand on lines of their own. Texts begin with `root`.
 * @throws GuideError naming line and column.
 */
export function ebnfGrammar(source: string): Grammar {
  return new EbnfReader(source).read();
}

class EbnfReader {
  readonly #source: string;
  readonly #rules = new Map<string, Expr>();
  #place = 0;
  #depth = 0;

  constructor(source: string) {
    spend(source.length);
    this.#source = source;
  }

  read(): Grammar {
    this.#skip();
    while (this.#place < this.#source.length) {
      const name = this.#matched(NAME);
      if (name === null) throw this.#fault('the name of a rule is expected');
      this.#skip();
      if (this.#matched(DEFINES) === null) throw this.#fault(`::= is expected after ${name}`);
      if (this.#rules.has(name)) throw this.#fault(`the rule ${name} is defined twice`);
      this.#skip();
      this.#rules.set(name, this.#alternatives());
    }
    return { rules: this.#rules, root: 'root' };
  }

  #alternatives(): Expr {
    const items = [this.#sequence()];
    while (this.#take('|')) {
      this.#skip();
      items.push(this.#sequence());
    }
    return alt(...items);
  }

  #sequence(): Expr {
    const items: Expr[] = [];
    for (let item = this.#repeated(); item !== null; item = this.#repeated()) items.push(item);
    return items.length === 0 ? EMPTY : seq(...items);
  }

  #repeated(): Expr | null {
    let item = this.#atom();
    if (item === null) return null;
    for (let count = this.#count(); count !== null; count = this.#count()) {
      item = repeat(item, count.min, count.max);
    }
    this.#skip();
    return item;
  }

  #count(): { min: number; max: number | null } | null {
    if (this.#take('*')) return { min: 0, max: null };
    if (this.#take('+')) return { min: 1, max: null };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (this.#source[this.#place] !== '{') return null;
    const found = this.#matched(COUNT);
    if (found === null) throw this.#fault('{ begins no count such as {2}, {2,} or {2,4}');
    const [, first, comma, last] = /^\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}$/.exec(found)!;
    const min = Number(first);
    const max = comma === '' ? min : last === '' ? null : Number(last);
    if (max !== null && max < min) throw this.#fault(`the count ${found} ends before it begins`);
    if (Math.max(min, max ?? 0) > MAX_REPETITION) {
      throw this.#fault(`the count ${found} is larger than ${MAX_REPETITION}, the most that is supported`);
    }
    return { min, max };
  }

  /** Reads one atom; null at the end of the sequence, also in front of the next rule. */
  #atom(): Expr | null {
    const character = this.#source[this.#place];
    if (character === '"' || character === "'") return text(this.#literal(character));
    if (character === '[') return { kind: 'chars', ranges: this.#class() };
    if (character === '.') {
      this.#place++;
      return ANY_CHARACTER;
    }
    if (character === '(') return this.#group();
    const begin = this.#place;
    const name = this.#matched(NAME);
    if (name === null) {
      if (character === undefined || character === '|' || character === ')') return null;
      throw this.#fault(`${JSON.stringify(character)} is not expected here`);
    }
    const behind = this.#place;
    this.#skip();
    const isNextRule = this.#matched(DEFINES) !== null;
    this.#place = isNextRule ? begin : behind;
    return isNextRule ? null : rule(name);
  }

  #group(): Expr {
    if (++this.#depth > MAX_DEPTH) throw this.#fault(`parentheses are nested deeper than ${MAX_DEPTH}`);
    this.#place++;
    this.#skip();
    if (this.#source[this.#place] === '=') throw this.#fault('look-ahead assertions are not supported');
    const inner = this.#alternatives();
    if (!this.#take(')')) throw this.#fault('a ( is not closed');
    this.#depth--;
    return inner;
  }

  #literal(quote: string): string {
    this.#place++;
    let value = '';
    for (;;) {
      const character = this.#character('a text', quote);
      if (character === null) return value;
      value += String.fromCodePoint(character);
    }
  }

  #class(): CodePoints {
    this.#place++;
    const isNegated = this.#take('^');
    const ranges: [number, number][] = [];
    for (;;) {
      const low = this.#character('a class', ']');
      if (low === null) break;
      if (this.#source[this.#place] !== '-' || this.#source[this.#place + 1] === ']') {
        ranges.push([low, low]);
        continue;
      }
      this.#place++;
      const high = this.#character('a class', ']')!;
      if (high < low) throw this.#fault('a range in [ ] ends before it begins');
      ranges.push([low, high]);
    }
    return isNegated ? complement(normalized(ranges)) : normalized(ranges);
  }

  /** Reads the next character of a text or class, with escapes; null after its end. */
  #character(what: string, end: string): number | null {
    const codePoint = this.#source.codePointAt(this.#place);
    if (codePoint === undefined || codePoint === 10) throw this.#fault(`${what} is not closed by ${end}`);
    this.#place += codePoint > 0xffff ? 2 : 1;
    if (String.fromCodePoint(codePoint) === end) return null;
    if (codePoint >= 0xd800 && codePoint < 0xe000) throw this.#fault('half a surrogate pair is no character');
    return codePoint === 0x5c ? this.#escape() : codePoint;
  }

  #escape(): number {
    const found = this.#matched(HEX_ESCAPE);
    if (found !== null) {
      const codePoint = Number.parseInt(found.slice(1), 16);
      const isCharacter = codePoint <= 0x10ffff && (codePoint < 0xd800 || codePoint > 0xdfff);
      if (!isCharacter) throw this.#fault(`\\${found} is no character`);
      return codePoint;
    }
    const letter = this.#source[this.#place++] ?? '';
    if (Object.hasOwn(ESCAPES, letter)) return ESCAPES[letter]!;
    if (/[A-Za-z0-9]/.test(letter) || letter === '' || letter > '~')
      throw this.#fault(`\\${letter} is no escape`);
    return letter.charCodeAt(0);
  }

  #skip(): void {
    this.#matched(BLANKS);
  }

  #take(character: string): boolean {
    if (this.#source[this.#place] !== character) return false;
    this.#place++;
    return true;
  }

  #matched(sticky: RegExp): string | null {
    sticky.lastIndex = this.#place;
    const found = sticky.exec(this.#source)?.[0] ?? null;
    if (found !== null) this.#place += found.length;
    return found;
  }

  #fault(what: string): GuideError {
    const before = this.#source.slice(0, this.#place).split('\n');
    return new GuideError(
      `The grammar is refused at line ${before.length}, column ${before.at(-1)!.length + 1}: ${what}.`,
    );
  }
}

const NAME = /[A-Za-z_][\w-]*/y;
const DEFINES = /::=/y;
const COUNT = /\{\s*\d{1,9}\s*(?:,\s*(?:\d{1,9}\s*)?)?\}/y;
const BLANKS = /(?:[ \t\r\n]|#[^\n]*)*/y;
const HEX_ESCAPE = /x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}/y;
