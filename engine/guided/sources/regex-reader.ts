import { type CodePoints, complement, GuideError, normalized } from '../grammar.js';
import { spend } from '../reading-work.js';
import { CLASSES, LINE_ENDS, propertyRanges } from './character-classes.js';
import type { RegexNode } from './regex-texts.js';

/** Deepest nesting of groups. */
const MAX_DEPTH = 200;
/** Largest count of a repetition. */
export const MAX_REPETITION = 10_000;

const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };

/**
 * Reads an ECMAScript regular expression with the flag u, as far as it is regular: no back-references, no look-behind. Characters
 * are code points. Greedy and lazy quantifiers match the same texts.
 * @throws GuideError naming the place and what is not supported.
 */
export function parseRegex(pattern: string): RegexNode {
  return new RegexReader(pattern).read();
}

/** The error of a regular expression that is refused as a whole, or at a place. */
export function regexFault(pattern: string, what: string, place?: number): GuideError {
  const characters = [...pattern.slice(0, 200)];
  const shown = characters.slice(0, 60).join('');
  const cut = characters.length > 60 ? '...' : '';
  const where = place === undefined ? '' : ` at place ${place}`;
  return new GuideError(`The regular expression ${shown}${cut} is refused${where}: ${what}.`);
}

class RegexReader {
  readonly #pattern: readonly string[];
  #place = 0;
  #depth = 0;

  constructor(pattern: string) {
    spend(pattern.length);
    this.#pattern = [...pattern];
  }

  read(): RegexNode {
    const regex = this.#choice();
    if (this.#place < this.#pattern.length) throw this.#fault('there is a ) that no ( opens');
    return regex;
  }

  #choice(): RegexNode {
    const branches = [this.#branch()];
    while (this.#take('|')) branches.push(this.#branch());
    return branches.length === 1 ? branches[0]! : { kind: 'alt', items: branches };
  }

  #branch(): RegexNode {
    const items: RegexNode[] = [];
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek())
      items.push(this.#quantified());
    return items.length === 1 ? items[0]! : { kind: 'seq', items };
  }

  #quantified(): RegexNode {
    let expr = this.#atom();
    for (let count = this.#quantifier(); count !== null; count = this.#quantifier()) {
      if (expr.kind === 'assertion') throw this.#fault('a ^, $ or \\b is repeated, which is not supported');
      expr = { kind: 'repeat', item: expr, min: count.min, max: count.max };
      if (!this.#take('?') && this.#peek() === '+')
        throw this.#fault('possessive quantifiers are not supported');
      const next = this.#peek();
      if (next === '*' || next === '+' || next === '?')
        throw this.#fault(`there is nothing that ${next} could repeat`);
    }
    return expr;
  }

  #quantifier(): { min: number; max: number | null } | null {
    if (this.#take('*')) return { min: 0, max: null };
    if (this.#take('+')) return { min: 1, max: null };
    if (this.#take('?')) return { min: 0, max: 1 };
    if (this.#peek() !== '{') return null;
    const rest = this.#pattern.slice(this.#place, this.#place + 24).join('');
    const found = /^\{(\d{1,9})(,(\d{1,9})?)?\}/.exec(rest);
    if (found === null)
      throw this.#fault('{ begins no count such as {2}, {2,} or {2,4}; write \\{ for the character');
    this.#place += found[0].length;
    const min = Number(found[1]);
    const max = found[2] === undefined ? min : found[3] === undefined ? null : Number(found[3]);
    if (max !== null && max < min) throw this.#fault(`the count {${min},${max}} ends before it begins`);
    if (Math.max(min, max ?? 0) > MAX_REPETITION) {
      throw this.#fault(`a count is ${Math.max(min, max ?? 0)}; at most ${MAX_REPETITION} is supported`);
    }
    return { min, max };
  }

  #atom(): RegexNode {
    const character = this.#pattern[this.#place++]!;
    switch (character) {
      case '(':
        return this.#group();
      case '[':
        return { kind: 'chars', ranges: this.#class() };
      case '.':
        return { kind: 'chars', ranges: complement(LINE_ENDS) };
      case '\\':
        if (this.#take('b')) return { kind: 'assertion', what: 'boundary' };
        if (this.#take('B')) return { kind: 'assertion', what: 'no boundary' };
        return { kind: 'chars', ranges: this.#escape(false) };
      case '*':
      case '+':
      case '?':
      case '{':
        throw this.#fault(`there is nothing that ${character} could repeat`);
      case '^':
        return { kind: 'assertion', what: 'begin' };
      case '$':
        return { kind: 'assertion', what: 'end' };
      default:
        return { kind: 'chars', ranges: one(character.codePointAt(0)!) };
    }
  }

  #group(): RegexNode {
    if (++this.#depth > MAX_DEPTH) throw this.#fault(`groups are nested deeper than ${MAX_DEPTH}`);
    const look = this.#take('?') ? this.#groupKind() : null;
    const item = this.#choice();
    if (!this.#take(')')) throw this.#fault('a ( is not closed');
    this.#depth--;
    return look === null ? item : { kind: 'ahead', item, isNegative: look === '!' };
  }

  /**
   * Skips the name of a group after (? and refuses look-behinds and flags. Returns the mark of a look-ahead.
   */
  #groupKind(): '=' | '!' | null {
    if (this.#take('=')) return '=';
    if (this.#take('!')) return '!';
    const rest = this.#pattern.slice(this.#place, this.#place + 80).join('');
    const found = /^(:|P?<[A-Za-z_]\w*>)/.exec(rest);
    if (found === null) {
      const kind = /^<[=!]/.test(rest) ? 'look-behind' : 'a group of this kind, or flags in it,';
      throw this.#fault(`${kind} is not supported`);
    }
    this.#place += found[0].length;
    return null;
  }

  #class(): CodePoints {
    const isNegated = this.#take('^');
    const ranges: (readonly [number, number])[] = [];
    while (!this.#take(']')) {
      const low = this.#classAtom();
      if (this.#peek() !== '-' || this.#pattern[this.#place + 1] === ']') {
        ranges.push(...low);
        continue;
      }
      this.#place++;
      const high = this.#classAtom();
      if (!isOne(low) || !isOne(high)) throw this.#fault('a range in [ ] begins or ends with a class');
      const [first, last] = [low[0]![0], high[0]![0]];
      if (last < first) throw this.#fault('a range in [ ] ends before it begins');
      ranges.push([first, last]);
    }
    return isNegated ? complement(normalized(ranges)) : normalized(ranges);
  }

  #classAtom(): CodePoints {
    const character = this.#pattern[this.#place++];
    if (character === undefined) throw this.#fault('a [ is not closed');
    if (character === '\\') return this.#escape(true);
    return [[character.codePointAt(0)!, character.codePointAt(0)!]];
  }

  #escape(isInClass: boolean): CodePoints {
    const letter = this.#pattern[this.#place++];
    if (letter === undefined) throw this.#fault('it ends with a \\');
    if (Object.hasOwn(CLASSES, letter)) return CLASSES[letter]!;
    if (letter === '0' && /\d/.test(this.#peek() ?? '')) throw this.#fault('octal escapes are not supported');
    if (Object.hasOwn(CONTROLS, letter)) return one(CONTROLS[letter]!);
    if (letter === 'b' && isInClass) return one(8);
    if (letter === 'x') return one(this.#hex(2));
    if (letter === 'u') return one(this.#unicode());
    if (letter === 'p' || letter === 'P') return this.#property(letter === 'P');
    if (letter === 'c') return one(this.#control());
    if (/[1-9k]/.test(letter)) throw this.#fault('back-references are not supported');
    if (/[A-Za-z]/.test(letter)) throw this.#fault(`\\${letter} is not supported`);
    return one(letter.codePointAt(0)!);
  }

  #hex(count: number): number {
    const digits = this.#pattern.slice(this.#place, this.#place + count).join('');
    if (!new RegExp(`^[0-9A-Fa-f]{${count}}$`).test(digits))
      throw this.#fault(`${count} hexadecimal digits are expected`);
    this.#place += count;
    return Number.parseInt(digits, 16);
  }

  #unicode(): number {
    if (!this.#take('{')) {
      const unit = this.#hex(4);
      const isHigh = unit >= 0xd800 && unit < 0xdc00;
      if (!isHigh || this.#pattern.slice(this.#place, this.#place + 2).join('') !== '\\u') return unit;
      this.#place += 2;
      return 0x10000 + ((unit - 0xd800) << 10) + (this.#hex(4) - 0xdc00);
    }
    const end = this.#pattern.indexOf('}', this.#place);
    const digits = this.#pattern.slice(this.#place, end).join('');
    if (end < 0 || !/^[0-9A-Fa-f]{1,6}$/.test(digits) || Number.parseInt(digits, 16) > 0x10ffff) {
      throw this.#fault('\\u{ } holds no code point in hexadecimal digits');
    }
    this.#place = end + 1;
    return Number.parseInt(digits, 16);
  }

  #control(): number {
    const letter = this.#pattern[this.#place++] ?? '';
    if (!/[A-Za-z]/.test(letter)) throw this.#fault('\\c is followed by no letter');
    return letter.charCodeAt(0) & 31;
  }

  #property(isNegated: boolean): CodePoints {
    const rest = this.#pattern.slice(this.#place, this.#place + 80).join('');
    const found = /^\{([A-Za-z_]+(=[A-Za-z_]+)?)\}/.exec(rest);
    const ranges = found && propertyRanges(found[1]!);
    if (found === null || ranges === null) throw this.#fault('\\p names no Unicode property that is known');
    this.#place += found[0].length;
    return isNegated ? complement(ranges) : ranges;
  }

  #peek(): string | undefined {
    return this.#pattern[this.#place];
  }

  #take(character: string): boolean {
    if (this.#pattern[this.#place] !== character) return false;
    this.#place++;
    return true;
  }

  #fault(what: string): GuideError {
    return regexFault(this.#pattern.join(''), what, this.#place);
  }
}

const one = (codePoint: number): CodePoints => normalized([[codePoint, codePoint]]);
const isOne = (ranges: CodePoints) => ranges.length === 1 && ranges[0]![0] === ranges[0]![1];
