import {
  ANY_CHARACTER,
  alt,
  type CodePoints,
  chars,
  complement,
  EMPTY,
  type Expr,
  GuideError,
  normalized,
  repeat,
  seq,
} from '../grammar.js';
import { spend } from '../reading-work.js';

/** Deepest nesting of groups. */
const MAX_DEPTH = 200;
/** Largest count of a repetition. */
export const MAX_REPETITION = 10_000;

const DIGITS: CodePoints = [[0x30, 0x39]];
const WORD: CodePoints = normalized([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
const SPACE: CodePoints = normalized([
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
const LINE_ENDS: CodePoints = normalized([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]);
const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complement(DIGITS),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
};
const CONTROLS: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 };

export interface RegexOptions {
  /**
   * 'full': the text matches from its first character to its last (anchors at the ends change nothing). 'search': some part of
   * the text matches, as for JSON Schema's `pattern`; with anchors that part reaches to the text's ends.
   */
  mode: 'full' | 'search';
}

/**
 * Reads an ECMAScript regular expression with the flag u, as far as it is regular: no look-around, no back-references, no
 * \b. Characters are code points. Greedy and lazy quantifiers match the same texts.
 * @throws GuideError naming the place and what is not supported.
 */
export function regexExpr(pattern: string, { mode }: RegexOptions): Expr {
  return new RegexReader(pattern, mode).read();
}

class RegexReader {
  readonly #pattern: readonly string[];
  readonly #mode: RegexOptions['mode'];
  #place = 0;
  #depth = 0;

  constructor(pattern: string, mode: RegexOptions['mode']) {
    spend(pattern.length);
    this.#pattern = [...pattern];
    this.#mode = mode;
  }

  read(): Expr {
    const branches = [this.#branch(true)];
    while (this.#take('|')) branches.push(this.#branch(true));
    if (this.#place < this.#pattern.length) throw this.#fault('there is a ) that no ( opens');
    return alt(...branches);
  }

  /** Reads one alternative. Anchors may stand at the ends of alternatives that are not in a group. */
  #branch(isOutermost: boolean): Expr {
    const items: Expr[] = [];
    const begins = this.#take('^');
    if (begins && !isOutermost) throw this.#fault('^ inside a group is not supported');
    let ends = false;
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      if (next === '$') {
        this.#place++;
        const follows = this.#peek();
        if (!isOutermost || (follows !== undefined && follows !== '|')) {
          throw this.#fault('$ is supported only at the end of an alternative that is in no group');
        }
        ends = true;
        break;
      }
      items.push(this.#quantified());
    }
    const branch = items.length === 0 ? EMPTY : seq(...items);
    if (this.#mode === 'full' || !isOutermost) return branch;
    const anything = repeat(ANY_CHARACTER, 0, null);
    return seq(...(begins ? [] : [anything]), branch, ...(ends ? [] : [anything]));
  }

  #quantified(): Expr {
    let expr = this.#atom();
    for (let count = this.#quantifier(); count !== null; count = this.#quantifier()) {
      expr = repeat(expr, count.min, count.max);
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

  #atom(): Expr {
    const character = this.#pattern[this.#place++]!;
    switch (character) {
      case '(':
        return this.#group();
      case '[':
        return { kind: 'chars', ranges: this.#class() };
      case '.':
        return { kind: 'chars', ranges: complement(LINE_ENDS) };
      case '\\':
        return { kind: 'chars', ranges: this.#escape(false) };
      case '*':
      case '+':
      case '?':
      case '{':
        throw this.#fault(`there is nothing that ${character} could repeat`);
      case '^':
        throw this.#fault('^ is supported only at the beginning of an alternative that is in no group');
      default:
        return chars([character.codePointAt(0)!, character.codePointAt(0)!]);
    }
  }

  #group(): Expr {
    if (++this.#depth > MAX_DEPTH) throw this.#fault(`groups are nested deeper than ${MAX_DEPTH}`);
    if (this.#take('?')) this.#groupKind();
    const branches = [this.#branch(false)];
    while (this.#take('|')) branches.push(this.#branch(false));
    if (!this.#take(')')) throw this.#fault('a ( is not closed');
    this.#depth--;
    return alt(...branches);
  }

  /** Skips the name of a group behind (? and refuses look-arounds and flags. */
  #groupKind(): void {
    const rest = this.#pattern.slice(this.#place, this.#place + 80).join('');
    const found = /^(:|P?<[A-Za-z_]\w*>)/.exec(rest);
    if (found === null) {
      const kind = /^<?[=!]/.test(rest) ? 'look-around' : 'a group of this kind, or flags in it,';
      throw this.#fault(`${kind} is not supported`);
    }
    this.#place += found[0].length;
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
    const shown = this.#pattern.slice(0, 60).join('');
    const cut = this.#pattern.length > 60 ? '...' : '';
    return new GuideError(
      `The regular expression ${shown}${cut} is refused at place ${this.#place}: ${what}.`,
    );
  }
}

const one = (codePoint: number): CodePoints => [[codePoint, codePoint]];
const isOne = (ranges: CodePoints) => ranges.length === 1 && ranges[0]![0] === ranges[0]![1];

/**
 * Categories of assigned characters, and common scripts: the ranges of each are found once, in all planes that have
 * any.
 */
const PROPERTIES =
  /^(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|Letter|Alphabetic|Lowercase|Uppercase|(Script|sc)=(Latin|Greek|Cyrillic|Han|Hiragana|Katakana|Hangul|Arabic|Hebrew|Thai|Devanagari))$/;
const LAST_ASSIGNED = 0x323af;
/** Steps that a property costs: the first time every character is tested for it. */
const PROPERTY_WORK = 20_000;

const knownProperties = new Map<string, CodePoints>();

/** Code points of a Unicode property; null if there is none of that name. */
function propertyRanges(name: string): CodePoints | null {
  spend(PROPERTY_WORK);
  const known = knownProperties.get(name);
  if (known !== undefined) return known;
  if (!PROPERTIES.test(name)) return null;
  let matches: RegExp;
  try {
    matches = new RegExp(`^\\p{${name}}$`, 'u');
  } catch {
    return null;
  }
  const ranges: [number, number][] = [];
  for (let codePoint = 0; codePoint <= LAST_ASSIGNED; codePoint++) {
    if (codePoint === 0xd800) codePoint = 0xe000;
    if (!matches.test(String.fromCodePoint(codePoint))) continue;
    const last = ranges.at(-1);
    if (last && last[1] === codePoint - 1) last[1] = codePoint;
    else ranges.push([codePoint, codePoint]);
  }
  const found = normalized(ranges);
  knownProperties.set(name, found);
  return found;
}
