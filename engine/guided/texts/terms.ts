import { spend } from '../reading-work.js';
import type { Alphabet } from './alphabet.js';
import type { TextSet } from './text-set.js';

const KINDS = ['chars', 'empty', 'seq', 'alt', 'and', 'not', 'repeat'] as const;
/** More terms than the limit of work lets be made. */
const MAX_TERMS = 2 ** 26;
/** Steps that a term takes at least. */
const TERM_WORK = 3;
/** Steps that the derivatives of a term take at least. */
const ROW_WORK = 4;

/** A set of texts over an alphabet; equal terms are the same object. */
export interface Term {
  readonly id: number;
  readonly kind: (typeof KINDS)[number];
  /** True if the empty text is one of the set. */
  readonly hasEmpty: boolean;
  readonly items: readonly Term[];
  /** Of chars: its letters, ascending. */
  readonly letters: readonly number[];
  readonly min: number;
  readonly max: number | null;
  /** By letter, the term after it; null: not yet asked for. */
  behind: readonly Term[] | null;
}

const NONE: readonly never[] = [];

/**
 * Makes terms, and the term of what may follow a letter: Brzozowski's derivative, which intersections and complements have as
 * simply as any other set. Terms have a normal form, so that a set has finitely many derivatives.
 */
export class Terms {
  readonly alphabet: Alphabet;
  readonly nothing: Term;
  readonly empty: Term;
  readonly all: Term;
  readonly #numLetters: number;
  #numTerms = 0;
  /** Terms by their kind, and by what they are made of. */
  readonly #known = Object.fromEntries(KINDS.map((kind) => [kind, new Map()])) as Record<
    Term['kind'],
    Map<string | number, Term>
  >;
  /** Sets share parts, which are read once. */
  readonly #ofSets = new Map<TextSet, Term>();

  constructor(alphabet: Alphabet) {
    this.alphabet = alphabet;
    this.#numLetters = alphabet.letters.length;
    this.nothing = this.#interned('chars', false, NONE);
    this.empty = this.#interned('empty', true, NONE);
    this.all = this.#interned('not', true, [this.nothing]);
  }

  of(set: TextSet): Term {
    const known = this.#ofSets.get(set);
    if (known !== undefined) return known;
    const term = this.#of(set);
    this.#ofSets.set(set, term);
    return term;
  }

  #of(set: TextSet): Term {
    spend(1);
    switch (set.kind) {
      case 'chars':
        return this.#chars(this.alphabet.lettersOf(set.ranges));
      case 'text':
        return [...set.text].reduceRight<Term>(
          (rest, character) =>
            this.#seq(this.#chars([this.alphabet.letterOf(character.codePointAt(0)!)]), rest),
          this.empty,
        );
      case 'seq':
        return set.items.reduceRight<Term>((rest, item) => this.#seq(this.of(item), rest), this.empty);
      case 'alt':
        return this.#alt(set.items.map((item) => this.of(item)));
      case 'and':
        return this.#and(set.items.map((item) => this.of(item)));
      case 'not':
        return this.#not(this.of(set.item));
      case 'repeat':
        return this.#repeat(this.of(set.item), set.min, set.max);
    }
  }

  /** By letter, the texts that may follow it at the beginning of a text of the set. */
  behind(term: Term): readonly Term[] {
    if (term.behind === null) {
      spend(ROW_WORK + this.#numLetters);
      term.behind = this.#derivatives(term);
    }
    return term.behind;
  }

  #derivatives({ kind, items, letters, min, max }: Term): readonly Term[] {
    switch (kind) {
      case 'empty':
        return this.#row(this.nothing);
      case 'chars': {
        const row = this.#row(this.nothing);
        for (const letter of letters) row[letter] = this.empty;
        return row;
      }
      case 'seq': {
        const [first, rest] = items as [Term, Term];
        if (!first.hasEmpty) return this.#combinedRow([first], ([behind]) => this.#seq(behind!, rest));
        return this.#combinedRow([first, rest], ([behind, after]) =>
          this.#alt([this.#seq(behind!, rest), after!]),
        );
      }
      case 'alt':
        return this.#combinedRow(items, (behind) => this.#alt(behind));
      case 'and':
        return this.#combinedRow(items, (behind) => this.#and(behind));
      case 'not':
        return this.#combinedRow(items, ([behind]) => this.#not(behind!));
      case 'repeat': {
        const more = this.#repeat(items[0]!, Math.max(0, min - 1), max === null ? null : max - 1);
        return this.#combinedRow(items, ([behind]) => this.#seq(behind!, more));
      }
    }
  }

  #row(term: Term): Term[] {
    return new Array<Term>(this.#numLetters).fill(term);
  }

  /** The derivatives of terms combined, once for all letters after which these are the same. */
  #combinedRow(terms: readonly Term[], combine: (behind: readonly Term[]) => Term): readonly Term[] {
    const rows = terms.map((term) => this.behind(term));
    // Groups of letters are split row by row, until all of a group have the same derivatives.
    const groupOf = new Array<number>(this.#numLetters).fill(0);
    let numGroups = 1;
    for (const row of rows) {
      const split = new Map<number, number>();
      for (let letter = 0; letter < groupOf.length; letter++) {
        const key = row[letter]!.id * this.#numLetters + groupOf[letter]!;
        let group = split.get(key);
        if (group === undefined) {
          group = split.size;
          split.set(key, group);
        }
        groupOf[letter] = group;
      }
      numGroups = split.size;
    }
    spend((rows.length * (this.#numLetters + 4 * numGroups)) >> 3);
    const made = new Array<Term | undefined>(numGroups);
    return groupOf.map((group, letter) => {
      made[group] ??= combine(rows.map((row) => row[letter]!));
      return made[group];
    });
  }

  #chars(letters: readonly number[]): Term {
    return letters.length === 0 ? this.nothing : this.#interned('chars', false, NONE, letters);
  }

  #seq(first: Term, rest: Term): Term {
    if (first === this.nothing || rest === this.nothing) return this.nothing;
    if (first === this.empty) return rest;
    if (rest === this.empty) return first;
    if (first.kind === 'seq') return this.#seq(first.items[0]!, this.#seq(first.items[1]!, rest));
    if (first === this.all && rest === this.all) return this.all;
    return this.#interned('seq', first.hasEmpty && rest.hasEmpty, [first, rest]);
  }

  #alt(terms: readonly Term[]): Term {
    const letters = new Set<number>();
    const items = new Set<Term>();
    for (const term of flat(terms, 'alt')) {
      if (term === this.all) return term;
      if (term.kind === 'chars') for (const letter of term.letters) letters.add(letter);
      else items.add(term);
    }
    const one = this.#chars([...letters].sort((a, b) => a - b));
    if (one !== this.nothing) items.add(one);
    if (items.has(this.empty) && [...items].some((item) => item !== this.empty && item.hasEmpty))
      items.delete(this.empty);
    if (items.size === 0) return this.nothing;
    return this.#combined(
      'alt',
      items,
      [...items].some(({ hasEmpty }) => hasEmpty),
    );
  }

  #and(terms: readonly Term[]): Term {
    const items = new Set<Term>();
    for (const term of flat(terms, 'and')) {
      if (term === this.nothing) return term;
      if (term !== this.all) items.add(term);
    }
    const hasEmpty = [...items].every((item) => item.hasEmpty);
    if (items.has(this.empty)) return hasEmpty ? this.empty : this.nothing;
    if (items.size === 0) return this.all;
    for (const item of items) if (item.kind === 'not' && items.has(item.items[0]!)) return this.nothing;
    return this.#combined('and', items, hasEmpty);
  }

  #combined(kind: 'alt' | 'and', items: ReadonlySet<Term>, hasEmpty: boolean): Term {
    if (items.size === 1) return [...items][0]!;
    return this.#interned(
      kind,
      hasEmpty,
      [...items].sort((a, b) => a.id - b.id),
    );
  }

  #not(item: Term): Term {
    return item.kind === 'not' ? item.items[0]! : this.#interned('not', !item.hasEmpty, [item]);
  }

  #repeat(item: Term, min: number, max: number | null): Term {
    if (max === 0 || item === this.empty) return this.empty;
    if (item === this.nothing) return min === 0 ? this.empty : this.nothing;
    if (min === 1 && max === 1) return item;
    const isAny = item.kind === 'chars' && item.letters.length === this.alphabet.numCharacterLetters;
    if (isAny && min === 0 && max === null) return this.all;
    const least = item.hasEmpty ? 0 : min;
    return this.#interned('repeat', least === 0, [item], NONE, least, max);
  }

  #interned(
    kind: Term['kind'],
    hasEmpty: boolean,
    items: readonly Term[],
    letters: readonly number[] = NONE,
    min = 0,
    max: number | null = null,
  ): Term {
    spend(TERM_WORK + ((items.length + letters.length) >> 1));
    const [first, second] = items;
    const known = this.#known[kind];
    const key =
      kind === 'seq'
        ? first!.id * MAX_TERMS + second!.id
        : kind === 'not'
          ? first!.id
          : `${items.map(({ id }) => id).join()} ${letters.join()} ${min} ${max}`;
    let term = known.get(key);
    if (term === undefined) {
      term = { id: this.#numTerms++, kind, hasEmpty, items, letters, min, max, behind: null };
      known.set(key, term);
    }
    return term;
  }
}

/** The terms, with the items of those of a kind in their place. */
function* flat(terms: readonly Term[], kind: 'alt' | 'and'): Iterable<Term> {
  for (const term of terms) {
    if (term.kind === kind) yield* term.items;
    else yield term;
  }
}
