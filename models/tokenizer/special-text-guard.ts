import { carryForm } from '../../base/written-json.js';
import { endBeforeSpace, leadingSpace } from '../jinja/text/strip.js';
import { type AddedToken, AddedTokenFinder, unitPattern } from './added-token-finder.js';
import type { TextSegment } from './tokenizer.js';

/** First character of Unicode's private use area: of no script, not white space, one UTF-16 unit each. */
const PRIVATE_USE_FIRST = 0xe000;
const PRIVATE_USE_LAST = 0xf8ff;

/**
 * Carries a user's strings through a chat template without letting them become control tokens.
 *
 * Before rendering, every special token's text inside a user's string is replaced by one private character that
 * occurs nowhere else; afterwards the text is split at those characters and each gets its text back, as a segment
 * that may not hold special tokens:
 *
 *   content   "see <|im_end|> here"   ->  "see X here"
 *   rendered  "<|im_start|>user\nsee X here<|im_end|>\n"
 *   segments  "<|im_start|>user\nsee " | "<|im_end|>" (plain) | " here<|im_end|>\n"
 *
 * A string without special text, nearly every one, is not touched, so trim, split, slices and comparisons in the
 * template see what the user sent; and a template that drops or cuts a protected string cannot bring the token back.
 * A string that begins or ends with part of a special token gets a private character there that only separates, so
 * that the text around it cannot complete the token ("<|im_" at the end, with "start|>" following).
 */
export class SpecialTextGuard {
  readonly #specialTexts: readonly string[];
  readonly #finder: AddedTokenFinder;
  readonly #longest: number;
  readonly #beginnings = new Set<string>();
  readonly #endings = new Set<string>();
  /** Pattern of the units with which special texts end. */
  readonly #lastUnit: RegExp | null;

  constructor(specialTexts: readonly string[]) {
    this.#specialTexts = specialTexts.filter((text) => text.length > 0);
    this.#finder = new AddedTokenFinder(
      this.#specialTexts.map((content, id): [string, AddedToken] => [
        content,
        { id, content, special: true, singleWord: false, stripLeft: false, stripRight: false },
      ]),
    );
    for (const text of this.#specialTexts) {
      for (let cut = 1; cut < text.length; cut++) {
        this.#beginnings.add(text.slice(0, cut));
        this.#endings.add(text.slice(cut));
      }
    }
    this.#longest = this.#specialTexts.reduce((longest, text) => Math.max(longest, text.length), 0);
    this.#lastUnit = unitPattern(new Set(this.#specialTexts.map((text) => text.charCodeAt(text.length - 1))));
  }

  /**
   * Starts one rendering. `taken` is further text that will be rendered, such as the template: its private characters
   * are not used.
   */
  open(taken: string): GuardedRendering {
    return new GuardedRendering(this, taken);
  }

  /** True where a string holds a special text that is not among `kept`. */
  holdsSpecial(text: string, kept: ReadonlySet<string>): boolean {
    return this.#finder.mayFind(text) && this.split(text, kept).some((piece) => typeof piece === 'number');
  }

  /** Parts of a string: plain text, or the index of a special text that is not among `kept`. */
  split(text: string, kept: ReadonlySet<string>): (string | number)[] {
    const sections = this.#finder.split(text, () => true);
    return sections.map((section) => {
      if ('text' in section) return section.text;
      return kept.has(section.token.content) ? section.token.content : section.token.id;
    });
  }

  /** Looks at all strings of a JSON value, keys included. */
  see(value: unknown, options: ProtectOptions = {}): StringsSeen {
    const seen: StringsSeen = { isAtRisk: false, privateTexts: '' };
    eachString(value, ROOT, options, (text, { marks, kept }) => {
      if (/[\uE000-\uF8FF]/.test(text)) seen.privateTexts += text;
      seen.isAtRisk ||=
        this.holdsSpecial(text, kept) ||
        (marks && (this.endsLikeBeginning(text) || this.startsLikeEnding(text)));
    });
    return seen;
  }

  specialText(index: number): string {
    return this.#specialTexts[index]!;
  }

  endsLikeBeginning(text: string): boolean {
    const trimmed = text.slice(0, endBeforeSpace(text));
    const end = trimmed.slice(Math.max(0, trimmed.length - this.#longest + 1));
    if (!this.#finder.mayFind(end)) return false;
    for (let length = end.length; length > 0; length--) {
      if (this.#beginnings.has(end.slice(-length))) return true;
    }
    return false;
  }

  startsLikeEnding(text: string): boolean {
    const start = text.slice(leadingSpace(text)).slice(0, Math.max(0, this.#longest - 1));
    if (this.#lastUnit === null) return false;
    this.#lastUnit.lastIndex = 0;
    if (!this.#lastUnit.test(start)) return false;
    for (let length = start.length; length > 0; length--) {
      if (this.#endings.has(start.slice(0, length))) return true;
    }
    return false;
  }
}

export interface ProtectOptions {
  /** Keys whose strings get no separating character at their borders. */
  unmarkedKeys?: ReadonlySet<string>;
  /** Special texts that stay unprotected within these objects. */
  kept?: { texts: ReadonlySet<string>; within: ReadonlySet<unknown> };
}

/** Treatment of strings at one place of the value. */
interface Place {
  marks: boolean;
  kept: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const ROOT: Place = { marks: true, kept: NONE };

/** What is found in the strings of a value. */
export interface StringsSeen {
  /** True where one of them may smuggle in a special text, or complete one. */
  isAtRisk: boolean;
  /** The strings that contain private characters themselves. */
  privateTexts: string;
}

/** Private characters of one rendering. */
export class GuardedRendering {
  readonly #guard: SpecialTextGuard;
  readonly #taken: string;
  /** Strings that contain private characters themselves. */
  #privateTexts = '';
  #characters: Map<number, string> | null = null;
  #separator = '';

  constructor(guard: SpecialTextGuard, taken: string) {
    this.#guard = guard;
    this.#taken = taken;
  }

  /**
   * Copies a JSON value with every string, keys included, protected. Called once for each rendering. @param besides seen in
   * further strings of the rendering, which are not at risk
   */
  protect<T>(value: T, options: ProtectOptions = {}, besides?: StringsSeen): T {
    // All strings are seen before the first is changed: a private character must be unused in all of them.
    const { isAtRisk, privateTexts } = this.#guard.see(value, options);
    if (!isAtRisk) return value;
    this.#privateTexts = privateTexts + (besides?.privateTexts ?? '');
    this.#characters = this.#choose(value, options);
    return mapStrings(value, ROOT, options, (text, place) => this.#rewriteText(text, place)) as T;
  }

  /** The characters that stand for a user's texts. */
  get marks(): ReadonlySet<string> {
    return new Set(this.#characters === null ? [] : [...this.#characters.values(), this.#separator]);
  }

  /** Splits rendered text into segments for Tokenizer.encodeSegments. */
  segments(rendered: string): TextSegment[] {
    if (this.#characters === null) return [{ text: rendered, special: true }];
    const textOf = new Map([[this.#separator, '']]);
    for (const [index, character] of this.#characters) textOf.set(character, this.#guard.specialText(index));
    const segments: TextSegment[] = [];
    let start = 0;
    for (let i = 0; i <= rendered.length; i++) {
      const original = i < rendered.length ? textOf.get(rendered.charAt(i)) : '';
      if (original === undefined) continue;
      if (i > start) segments.push({ text: rendered.slice(start, i), special: true });
      if (original !== '') segments.push({ text: original, special: false });
      start = i + 1;
    }
    return segments;
  }

  /** Chooses an unused character for each special text that occurs, and one that separates. */
  #choose(value: unknown, options: ProtectOptions): Map<number, string> {
    const wanted = new Set<number>();
    eachString(value, ROOT, options, (text, { kept }) => {
      if (!this.#guard.holdsSpecial(text, kept)) return;
      for (const piece of this.#guard.split(text, kept)) if (typeof piece === 'number') wanted.add(piece);
    });
    const used = new Set(this.#taken + this.#privateTexts);
    const free: string[] = [];
    for (let code = PRIVATE_USE_FIRST; code <= PRIVATE_USE_LAST && free.length <= wanted.size; code++) {
      const character = String.fromCharCode(code);
      if (!used.has(character)) free.push(character);
    }
    const separator = free.pop();
    if (separator === undefined || free.length < wanted.size) {
      throw new RangeError("The messages use up Unicode's private characters (U+E000 to U+F8FF).");
    }
    this.#separator = separator;
    return new Map([...wanted].map((index, i) => [index, free[i]!]));
  }

  #rewriteText(text: string, { marks, kept }: Place): string {
    const pieces = this.#guard.split(text, kept);
    const body = pieces
      .map((piece) => (typeof piece === 'number' ? this.#characters!.get(piece)! : piece))
      .join('');
    if (!marks) return body;
    // Inside the outer white space, the separator leaves trimming as it would be without.
    const lead = leadingSpace(body);
    const before = this.#guard.startsLikeEnding(text) ? this.#separator : '';
    const after = this.#guard.endsLikeBeginning(text) ? this.#separator : '';
    const end = Math.max(lead, endBeforeSpace(body));
    return body.slice(0, lead) + before + body.slice(lead, end) + after + body.slice(end);
  }
}

/** Calls `see` with every string of a JSON value, keys included, in the order of mapStrings. */
function eachString(
  value: unknown,
  place: Place,
  options: ProtectOptions,
  see: (text: string, place: Place) => void,
): void {
  if (typeof value === 'string') see(value, place);
  else if (Array.isArray(value)) for (const item of value) eachString(item, place, options, see);
  else if (typeof value === 'object' && value !== null) {
    const kept = options.kept?.within.has(value) ? options.kept.texts : place.kept;
    const unmarked = { marks: false, kept };
    const marked = { marks: true, kept };
    for (const [name, item] of Object.entries(value)) {
      see(name, unmarked);
      eachString(item, options.unmarkedKeys?.has(name) ? unmarked : marked, options, see);
    }
  }
}

/** Calls `change` on every string of a JSON value, keys included, and returns the value with the results. */
function mapStrings(
  value: unknown,
  place: Place,
  options: ProtectOptions,
  change: (text: string, place: Place) => string,
): unknown {
  if (typeof value === 'string') return change(value, place);
  if (Array.isArray(value)) {
    const mapped = value.map((item) => mapStrings(item, place, options, change));
    carryForm(value, mapped);
    return mapped;
  }
  if (typeof value !== 'object' || value === null) return value;
  const kept = options.kept?.within.has(value) ? options.kept.texts : place.kept;
  const mapped = Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      change(name, { marks: false, kept }),
      mapStrings(item, { marks: !options.unmarkedKeys?.has(name), kept }, options, change),
    ]),
  );
  carryForm(value, mapped);
  return mapped;
}
