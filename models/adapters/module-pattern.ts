import { CheckpointError } from '../checkpoints/checkpoint.js';

/** Makes the error of a pattern from a clause: "has an unclosed bracket". */
type Fail = (what: string) => CheckpointError;

/** Steps that may still be taken over all patterns of an adapter. */
export interface StepBudget {
  left: number;
}

const MAX_PATTERN_LENGTH = 4096;
/** Greatest depth of the recursion, which grows with the text and with counted repetitions. */
const MAX_DEPTH = 500;
const MAX_REPETITIONS = 1000;
const TOO_MANY_STEPS = 'takes too many steps';

/** Matches from a place of the text; calls `next` with each place after a match until it returns true. */
type Matcher = (run: Run, at: number, next: (at: number) => boolean) => boolean;

/** One match of a pattern against a text, with its bounds. */
class Run {
  readonly text: string;
  readonly #budget: StepBudget;
  readonly #fail: Fail;
  #depth = 0;

  constructor(text: string, budget: StepBudget, fail: Fail) {
    this.text = text;
    this.#budget = budget;
    this.#fail = fail;
  }

  enter(matcher: Matcher, at: number, next: (at: number) => boolean): boolean {
    if (this.#budget.left-- <= 0) throw this.#fail(TOO_MANY_STEPS);
    if (++this.#depth > MAX_DEPTH) throw this.#fail('is nested too deeply');
    const found = matcher(this, at, next);
    this.#depth--;
    return found;
  }
}

/**
 * A regular expression of Python as adapter_config.json has them, over names of modules. It is matched here, and not by
 * JavaScript, since the file may come from anybody and a pattern such as `(a+)+$` would take for ever: the steps are
 * counted. Known: alternatives, groups, lookaround, classes, repetitions, ^ $ \A \Z \b \B \d \w \s. Refused: references to
 * groups, flags, atomic groups.
 */
export class ModulePattern {
  readonly #fail: Fail;
  readonly #matcher: Matcher;

  /**
   * `where` names file and setting, for errors; `shown` is the pattern as it stands there.
   * @throws CheckpointError where the pattern is no regular expression, or has parts that are not known here.
   */
  constructor(where: string, source: string, shown = source) {
    this.#fail = (what) =>
      new CheckpointError(`${where}: the pattern ${JSON.stringify(shown.slice(0, 100))} ${what}.`);
    if (source.length > MAX_PATTERN_LENGTH) {
      throw this.#fail(`is ${source.length} characters long, more than ${MAX_PATTERN_LENGTH}`);
    }
    this.#matcher = new PatternParser(source, this.#fail).parse();
  }

  /** True where the pattern matches the whole text. @throws CheckpointError where the budget is used up. */
  matchesAll(text: string, budget: StepBudget): boolean {
    return new Run(text, budget, this.#fail).enter(this.#matcher, 0, (at) => at === text.length);
  }
}

/** Builds matchers by recursive descent. */
class PatternParser {
  readonly #source: string;
  readonly #fail: Fail;
  #at = 0;
  #depth = 0;

  constructor(source: string, fail: Fail) {
    this.#source = source;
    this.#fail = fail;
  }

  parse(): Matcher {
    const matcher = this.#alternatives();
    if (this.#at < this.#source.length) throw this.#fail('has an unopened parenthesis');
    return matcher;
  }

  #alternatives(): Matcher {
    if (++this.#depth > 100) throw this.#fail('is nested too deeply');
    const branches = [this.#sequence()];
    while (this.#take('|')) branches.push(this.#sequence());
    this.#depth--;
    if (branches.length === 1) return branches[0]!;
    return (run, at, next) => branches.some((branch) => run.enter(branch, at, next));
  }

  #sequence(): Matcher {
    const pieces: Matcher[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      pieces.push(this.#repeated(this.#atom()));
    }
    const matchFrom = (run: Run, piece: number, at: number, next: (at: number) => boolean): boolean =>
      piece === pieces.length
        ? next(at)
        : run.enter(pieces[piece]!, at, (behind) => matchFrom(run, piece + 1, behind, next));
    return (run, at, next) => matchFrom(run, 0, at, next);
  }

  #repeated(atom: Matcher): Matcher {
    const range = this.#quantifier();
    if (range === null) return atom;
    const [least, most] = range;
    // Lazy repetitions match the same texts.
    if (!this.#take('?') && this.#take('+')) throw this.#fail('has a possessive repetition');
    if ('*+?'.includes(this.#source[this.#at] ?? ' ') || this.#quantifier() !== null) {
      throw this.#fail('repeats a repetition');
    }
    const matchFrom = (run: Run, count: number, at: number, next: (at: number) => boolean): boolean => {
      const again = (behind: number) =>
        // Beyond the least count an empty repetition would repeat for ever.
        (behind > at || count < least) && matchFrom(run, count + 1, behind, next);
      return (count < most && run.enter(atom, at, again)) || (count >= least && next(at));
    };
    return (run, at, next) => matchFrom(run, 0, at, next);
  }

  /** Least and most repetitions; null where no quantifier follows. */
  #quantifier(): [number, number] | null {
    if (this.#take('*')) return [0, Number.POSITIVE_INFINITY];
    if (this.#take('+')) return [1, Number.POSITIVE_INFINITY];
    if (this.#take('?')) return [0, 1];
    const counted = /^\{(\d*)(,?)(\d*)\}/.exec(this.#source.slice(this.#at, this.#at + 24));
    if (counted === null || (counted[1] === '' && counted[2] === '')) return null;
    this.#at += counted[0].length;
    const least = Number(counted[1]);
    const most = counted[3] !== '' ? Number(counted[3]) : counted[2] ? Number.POSITIVE_INFINITY : least;
    if (Math.max(least, Number.isFinite(most) ? most : 0) > MAX_REPETITIONS || least > most) {
      throw this.#fail(`has the repetition ${counted[0]}, not from 0 to ${MAX_REPETITIONS}`);
    }
    return [least, most];
  }

  #atom(): Matcher {
    const character = this.#source[this.#at++]!;
    if (character === '(') return this.#group();
    if (character === '[') return this.#class();
    if (character === '\\') return this.#escape();
    if (character === '.') return ofCharacter((code) => code !== 10);
    if (character === '^') return ofPlace((_, at) => at === 0);
    if (character === '$') return ofPlace((text, at) => at === text.length);
    if ('*+?'.includes(character)) throw this.#fail('repeats nothing');
    return ofCharacter(is(character));
  }

  #group(): Matcher {
    const look = ['?=', '?!', '?<=', '?<!'].find((kind) => this.#take(kind));
    if (look === undefined && !this.#take('?:') && this.#source[this.#at] === '?') {
      const name = /^\?P<\w+>/.exec(this.#source.slice(this.#at, this.#at + 100));
      if (name === null) throw this.#fail('has a group of a kind that is not known here');
      this.#at += name[0].length;
    }
    const inner = this.#alternatives();
    if (!this.#take(')')) throw this.#fail('has an unclosed parenthesis');
    if (look === undefined) return inner;
    const isThere = look.includes('<') ? endsAt(inner) : startsAt(inner);
    const expected = look.endsWith('=');
    return (run, at, next) => isThere(run, at) === expected && next(at);
  }

  #class(): Matcher {
    const negated = this.#take('^');
    const members: ((code: number) => boolean)[] = [];
    while (members.length === 0 || this.#source[this.#at] !== ']') {
      const first = this.#classMember();
      const ranges = this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']';
      if (typeof first === 'function') {
        members.push(first);
      } else if (ranges) {
        this.#at++;
        const last = this.#classMember();
        if (typeof last === 'function') throw this.#fail('has a range of classes');
        members.push((code) => code >= first.charCodeAt(0) && code <= last.charCodeAt(0));
      } else {
        members.push(is(first));
      }
    }
    this.#at++;
    return ofCharacter((code) => members.some((member) => member(code)) !== negated);
  }

  /** A character of a class, or a class in it. */
  #classMember(): string | ((code: number) => boolean) {
    const character = this.#source[this.#at++];
    if (character === undefined) throw this.#fail('has an unclosed bracket');
    if (character !== '\\') return character;
    const escaped = this.#source[this.#at++] ?? '';
    return CLASSES.get(escaped) ?? this.#literal(escaped);
  }

  #escape(): Matcher {
    const escaped = this.#source[this.#at++] ?? '';
    const characters = CLASSES.get(escaped);
    if (characters !== undefined) return ofCharacter(characters);
    if (escaped === 'A') return ofPlace((_, at) => at === 0);
    if (escaped === 'Z') return ofPlace((text, at) => at === text.length);
    if (escaped === 'b') return ofPlace(isWordBoundary);
    if (escaped === 'B') return ofPlace((text, at) => !isWordBoundary(text, at));
    return ofCharacter(is(this.#literal(escaped)));
  }

  /** The character that a backslash makes literal. Letters and digits mean other things, of which none is in names. */
  #literal(escaped: string): string {
    if (escaped === '') throw this.#fail('ends with a backslash');
    if (isWord(escaped.charCodeAt(0)) && escaped !== '_') {
      throw this.#fail(`has \\${escaped}, which is not known here`);
    }
    return escaped;
  }

  #take(text: string): boolean {
    const isNext = this.#source.startsWith(text, this.#at);
    if (isNext) this.#at += text.length;
    return isNext;
  }
}

const isDigit = (code: number) => code >= 48 && code <= 57;
const isSpace = (code: number) => code === 32 || (code >= 9 && code <= 13);
const isWord = (code: number) =>
  isDigit(code) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;

const CLASSES = new Map<string, (code: number) => boolean>([
  ['d', isDigit],
  ['D', (code) => !isDigit(code)],
  ['w', isWord],
  ['W', (code) => !isWord(code)],
  ['s', isSpace],
  ['S', (code) => !isSpace(code)],
]);

const is = (character: string) => (code: number) => code === character.charCodeAt(0);

function ofCharacter(fits: (code: number) => boolean): Matcher {
  return ({ text }, at, next) => at < text.length && fits(text.charCodeAt(at)) && next(at + 1);
}

function ofPlace(fits: (text: string, at: number) => boolean): Matcher {
  return ({ text }, at, next) => fits(text, at) && next(at);
}

function isWordBoundary(text: string, at: number): boolean {
  const before = at > 0 && isWord(text.charCodeAt(at - 1));
  return before !== (at < text.length && isWord(text.charCodeAt(at)));
}

const startsAt = (inner: Matcher) => (run: Run, at: number) => run.enter(inner, at, () => true);

function endsAt(inner: Matcher) {
  return (run: Run, end: number) => {
    for (let start = 0; start <= end; start++) {
      if (run.enter(inner, start, (at) => at === end)) return true;
    }
    return false;
  };
}
