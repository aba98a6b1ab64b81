/**
 * True for regular expressions that cut any text in time proportional to its length. JavaScript's engine tries one way
 * after another: `(a+)+$` takes for ever on forty letters. The proof covers the form that patterns of tokenizers have;
 * any other pattern counts as unproven, even a harmless one.
 *
 * A pattern is branches, tried in order at each position. A branch is pieces of bounded length, then unbounded
 * repetitions of single characters' classes. Three forms of the unbounded part are linear over a whole text:
 *
 *   C+ D* ...     only the first must match: having read a run it never fails, and what it read is consumed
 *   C* D+ ...     may read a run of C and fail; the next branch is the same with C+ first, and consumes the run. The
 *                 same with a single D
 *   \s+(?!\S)     gives one character back at most; fails only at a single space
 */
export function isLinearPattern(pattern: string): boolean {
  if (pattern.length > MAX_LENGTH) return false;
  if (KNOWN.has(pattern)) return true;
  const branches = readPattern(pattern.replace(SPACES_BY_HALVES, '\\s+').replaceAll(FURTHER_WORDS, ''));
  if (branches === null) return false;
  const ways = branches.reduce((sum, branch) => sum + waysOf(branch), 0);
  return ways <= MAX_WAYS && branches.every((branch, i) => isLinear(branch, branches[i + 1]));
}

/** Reads a pattern; null if it lacks the form of branches and pieces described above. */
export function readPattern(pattern: string): Branch[] | null {
  return pattern.length > MAX_LENGTH ? null : new PatternReader(pattern).read();
}

/** The patterns of single characters in a piece: itself, or those of all branches of a group. */
export function atomsOf(piece: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < piece.length; ) {
    const expression = [ATOM, GROUP, QUANTIFIER].find((one) => {
      one.lastIndex = at;
      return one.test(piece);
    });
    if (expression === ATOM) found.push(piece.slice(at, ATOM.lastIndex));
    // What else there is ends a branch, or the group.
    at = expression === undefined ? at + 1 : expression.lastIndex;
  }
  return found;
}

const MAX_LENGTH = 4096;
/** Most ways to match the bounded pieces at one position, over all branches. */
const MAX_WAYS = 1024;
/** Greatest count of a repetition. */
const MAX_COUNT = 64;
/**
 * BLOOM's pattern, whose bracket the library reads as one class, and spaces at the end of a text: without what stands
 * before them, each place of a run would be tried. Digits after a mark are read once for each mark. A run of
 * two spaces or more, which Unigram's normalizers make one, is consumed as a whole.
 */
const KNOWN: ReadonlySet<string> = new Set([
  ' ?[^(\\s|[.,!?…。，、।۔،])]+',
  '(?<!\\s)\\s+$',
  '<sentinel:[0-9]+>',
  ' {2,}',
]);

/**
 * A run of spaces in pieces of at most 512, each half of the one before: what fails at a place has read no more than twice what the next
 * piece takes.
 */
export const SPACES_BY_HALVES =
  '\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|' +
  '\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}';
/**
 * Words after a first one, with a space before each: it never fails, and what it reads is consumed but for
 * the last space.
 */
export const FURTHER_WORDS = '(?: \\p{L}[\\p{L}\\p{M}]*)*';

/** A part of a branch: one character, or a group, with how often it is there. */
export interface Piece {
  text: string;
  least: number;
  /** Most repetitions; Infinity: unbounded, of one character each. */
  most: number;
  /** Number of ways to match at one position, without repetitions. */
  ways: number;
}

/** One of the ways that a pattern tries in turn. */
export interface Branch {
  pieces: Piece[];
  /** True where the branch ends with (?!\S). */
  beforeSpace: boolean;
}

/**
 * Number of ways of a branch: pieces after the first unbounded one are tried once for each way through those before.
 */
function waysOf({ pieces }: Branch): number {
  let ways = 1;
  let steps = 1;
  let isBounded = true;
  for (const { least, most, ways: own } of pieces) {
    isBounded &&= most !== Number.POSITIVE_INFINITY;
    if (isBounded) ways *= own * (most - least + 1);
    steps += own;
  }
  return ways * steps;
}

function isLinear({ pieces, beforeSpace }: Branch, next: Branch | undefined): boolean {
  if (beforeSpace) return pieces.length === 1 && pieces[0]!.text === '\\s' && isRun(pieces[0]!);
  const first = pieces.findIndex(isUnbounded);
  if (first < 0) return true;
  const rest = pieces.slice(first + 1);
  if (rest.every(({ least }) => least === 0)) return true;
  const [second, ...others] = rest;
  const isOne = second!.least === 1 && second!.most === 1;
  const mayFailOnce = (isRun(second!) || isOne) && others.every(({ least }) => least === 0);
  return mayFailOnce && next !== undefined && consumesRun(next, pieces, first);
}

/** True where a branch begins with the same pieces, and takes a whole run of the class repeated at `first`. */
function consumesRun(branch: Branch, pieces: readonly Piece[], first: number): boolean {
  const run = branch.pieces[first];
  if (run === undefined || !isRun(run) || run.text !== pieces[first]!.text) return false;
  for (let i = 0; i < first; i++) {
    const [one, other] = [branch.pieces[i]!, pieces[i]!];
    // Where the piece can be left out, the run alone suffices for the branch.
    if (one.text !== other.text || one.least !== 0 || other.least !== 0 || one.most !== other.most)
      return false;
  }
  return isLinear(branch, undefined);
}

function isUnbounded({ most }: Piece): boolean {
  return most === Number.POSITIVE_INFINITY;
}

function isRun(piece: Piece): boolean {
  return isUnbounded(piece) && piece.least === 1;
}

/**
 * Pattern of one character: a class, an escape for a class or a character, a character that stands for itself; also one of a class that is
 * none of another: (?:(?!\p{Han})\p{L}).
 */
const ATOM = (() => {
  const escaped = String.raw`\\(?:[pP]\{[^{}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrtfvsSdDwW]|[^A-Za-z0-9])`;
  const one = String.raw`(?:\[\^?(?:[^[\]\\&]|&(?!&)|${escaped})+\]|${escaped})`;
  return new RegExp(String.raw`${one}|\(\?:\(\?!${one}\)${one}\)|[^\\()[\]{}|*+?^$]`, 'uy');
})();
/**
 * Pattern of a quantifier. The library turns a possessive `++` into `+`; a lazy one, or a count followed by a sign, is
 * not proved.
 */
const QUANTIFIER = /(?:([*+?])\+?|\{(\d{1,3})(,?)(\d{0,3})\})(?![*+?{])/y;
const GROUP = /\((?:\?i?:)?/y;

class PatternReader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  read(): Branch[] | null {
    const branches: Branch[] = [];
    do {
      const branch = this.#branch(true);
      if (branch === null) return null;
      branches.push(branch);
    } while (this.#take('|'));
    return this.#at === this.#pattern.length ? branches : null;
  }

  #branch(isOuter: boolean): Branch | null {
    const pieces: Piece[] = [];
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at]!)) {
      // The library writes the second for the first.
      if (this.#take('(?!\\S)') || this.#take('(?!\\P{White_Space})')) {
        const isEnd = this.#at === this.#pattern.length || this.#pattern[this.#at] === '|';
        return isOuter && isEnd ? { pieces, beforeSpace: true } : null;
      }
      const piece = this.#piece(isOuter);
      if (piece === null) return null;
      pieces.push(piece);
    }
    // An empty branch would match between all characters.
    return pieces.length === 0 ? null : { pieces, beforeSpace: false };
  }

  #piece(isOuter: boolean): Piece | null {
    const text = this.#match(ATOM)?.[0];
    if (text !== undefined) {
      const repeated = this.#quantifier();
      const isBounded = repeated !== null && repeated.most !== Number.POSITIVE_INFINITY;
      return repeated !== null && (isOuter || isBounded) ? { text, ways: 1, ...repeated } : null;
    }
    if (!isOuter) return null;
    const start = this.#at;
    if (this.#match(GROUP) === null) return null;
    let ways = 0;
    do {
      const branch = this.#branch(false);
      if (branch === null) return null;
      ways += waysOf(branch);
    } while (this.#take('|'));
    if (!this.#take(')')) return null;
    const group = this.#pattern.slice(start, this.#at);
    const repeated = this.#quantifier();
    return repeated !== null && repeated.most === 1 ? { text: group, ways, ...repeated } : null;
  }

  #quantifier(): { least: number; most: number } | null {
    const found = this.#match(QUANTIFIER);
    if (found === null) {
      const isPlain = !/[*+?{]/.test(this.#pattern[this.#at] ?? '');
      return isPlain ? { least: 1, most: 1 } : null;
    }
    const [, sign, least, comma, most] = found;
    if (sign !== undefined) {
      return { least: sign === '+' ? 1 : 0, most: sign === '?' ? 1 : Number.POSITIVE_INFINITY };
    }
    const low = Number(least);
    const high = comma === '' ? low : most === '' ? Number.POSITIVE_INFINITY : Number(most);
    if (comma === '' && most !== '') return null;
    const isSmall = low <= MAX_COUNT && high <= MAX_COUNT && low <= high && high > 0;
    return isSmall ? { least: low, most: high } : null;
  }

  #match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#pattern);
    if (found !== null) this.#at += found[0].length;
    return found;
  }

  #take(text: string): boolean {
    if (!this.#pattern.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}
