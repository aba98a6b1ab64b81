import { type CodePoints, complement } from '../grammar.js';
import { GuideError } from '../guide-error.js';
import { spend } from '../reading-work.js';
import {
  ANY_TEXT,
  allOf,
  anyOf,
  complementOf,
  EMPTY_TEXT,
  NO_TEXT,
  sequenceOf,
  type TextSet,
} from '../texts/text-set.js';
import { WORD } from './character-classes.js';

/** A regular expression as it is written: sets of texts, and what must hold at a place between two characters. */
export type RegexNode =
  | { readonly kind: 'chars'; readonly ranges: CodePoints }
  | { readonly kind: 'seq' | 'alt'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'repeat'; readonly item: RegexNode; readonly min: number; readonly max: number | null }
  | { readonly kind: 'assertion'; readonly what: 'begin' | 'end' | 'boundary' | 'no boundary' }
  | { readonly kind: 'ahead'; readonly item: RegexNode; readonly isNegative: boolean };

/** What stands before a place in a text: nothing, a word character, or another. */
type Before = 'start' | 'word' | 'other';

/** Most repetitions of a part with look-aheads or anchors: each is written out. */
const MAX_ASSERTIONS = 16;
/** Steps that a part of an expression with look-aheads or anchors takes. */
const PART_WORK = 8;

const NOT_WORD: TextSet = { kind: 'chars', ranges: complement(WORD) };
const A_WORD: TextSet = { kind: 'chars', ranges: WORD };
const BEHIND: Readonly<Record<'word' | 'other', TextSet>> = {
  word: sequenceOf(ANY_TEXT, A_WORD),
  other: sequenceOf(ANY_TEXT, NOT_WORD),
};

/**
 * The texts that a regular expression matches as a whole (`full`), or a part of which it matches (`search`). Look-aheads and
 * anchors become intersections: where one stands, the texts that may follow are those that fulfil it too.
 * @throws GuideError where a part with look-aheads is repeated
 */
export function textsOf(regex: RegexNode, mode: 'full' | 'search'): TextSet {
  const branches = regex.kind === 'alt' ? regex.items : [regex];
  return anyOf(...branches.map((branch) => simpleBranch(branch, mode) ?? branchTexts(branch, mode)));
}

/** A branch whose only assertions are anchors at its ends, which then need no intersection; null for any other. */
function simpleBranch(branch: RegexNode, mode: 'full' | 'search'): TextSet | null {
  const items = branch.kind === 'seq' ? [...branch.items] : [branch];
  const begins = isAssertion(items[0], 'begin');
  if (begins) items.shift();
  const ends = isAssertion(items.at(-1), 'end');
  if (ends) items.pop();
  if (items.some(hasAssertion)) return null;
  const inside = sequenceOf(...(items as TextSet[]));
  if (mode === 'full') return inside;
  return sequenceOf(...(begins ? [] : [ANY_TEXT]), inside, ...(ends ? [] : [ANY_TEXT]));
}

function branchTexts(branch: RegexNode, mode: 'full' | 'search'): TextSet {
  if (mode === 'full') return followed([branch], EMPTY_TEXT, 'start');
  if (!asksBefore(branch)) return sequenceOf(ANY_TEXT, followed([branch], ANY_TEXT, 'start'));
  const later = (['word', 'other'] as const).map((before) =>
    sequence(BEHIND[before], followed([branch], ANY_TEXT, before)),
  );
  return either([followed([branch], ANY_TEXT, 'start'), ...later]);
}

/**
 * Texts that the parts match one after the other, and then those of `rest`, at a place that follows `before`.
 */
function followed(parts: readonly RegexNode[], rest: TextSet, before: Before): TextSet {
  spend(PART_WORK);
  const first = parts.findIndex(hasAssertion);
  if (first < 0) return sequence(sequenceOf(...(parts as TextSet[])), rest);
  if (first > 0)
    return behindPlain(sequenceOf(...(parts.slice(0, first) as TextSet[])), parts.slice(first), rest, before);
  const [part, ...more] = parts as [RegexNode, ...RegexNode[]];
  switch (part.kind) {
    case 'assertion':
      return assertion(part.what, followed(more, rest, before), before);
    case 'ahead': {
      const ahead = followed([part.item], ANY_TEXT, before);
      return both(part.isNegative ? complementOf(ahead) : ahead, followed(more, rest, before));
    }
    case 'seq':
      return followed([...part.items, ...more], rest, before);
    case 'alt': {
      if (more.some(asksBefore))
        return either(part.items.map((item) => followed([item, ...more], rest, before)));
      const behind = followed(more, rest, before);
      return either(part.items.map((item) => followed([item], behind, before)));
    }
    case 'repeat':
      return repeated(part, more, rest, before);
    default:
      throw new Error(`A ${part.kind} has no assertion.`);
  }
}

/** A set without assertions, followed by parts that may ask for the last character of its texts. */
function behindPlain(set: TextSet, parts: readonly RegexNode[], rest: TextSet, before: Before): TextSet {
  if (!parts.some(asksBefore)) return sequence(set, followed(parts, rest, before));
  const ways = (['word', 'other'] as const).map((last) =>
    sequence(allOf(set, BEHIND[last]), followed(parts, rest, last)),
  );
  return either(hasEmptyText(set) ? [followed(parts, rest, before), ...ways] : ways);
}

/** A repeated part with assertions, written out. */
function repeated(
  { item, min, max }: Extract<RegexNode, { kind: 'repeat' }>,
  more: readonly RegexNode[],
  rest: TextSet,
  before: Before,
): TextSet {
  if (max === null || max > MAX_ASSERTIONS) {
    const tempered = max === null ? temperedRepeat(item, min, followed(more, rest, before)) : null;
    if (tempered !== null) return tempered;
    throw new GuideError(
      `a part with a look-ahead, ^, $ or \\b is repeated ${max === null ? 'without an end' : `${max} times`}; at most ${MAX_ASSERTIONS} times is supported`,
    );
  }
  const ways = Array.from({ length: max - min + 1 }, (_, i) => {
    const copies = new Array<RegexNode>(min + i).fill(item);
    return followed([...copies, ...more], rest, before);
  });
  return either(ways);
}

/** `(?:(?!x)c)*` up to the end of the text: characters c among which there is no x; null for any other part. */
function temperedRepeat(item: RegexNode, min: number, rest: TextSet): TextSet | null {
  if (rest !== EMPTY_TEXT || item.kind !== 'seq' || item.items.length !== 2) return null;
  const [look, character] = item.items as [RegexNode, RegexNode];
  if (look.kind !== 'ahead' || !look.isNegative || character.kind !== 'chars' || asksBefore(look))
    return null;
  const banned = followed([look.item], ANY_TEXT, 'start');
  if (hasEmptyText(banned)) return null;
  const characters: TextSet = { kind: 'repeat', item: character, min, max: null };
  return both(complementOf(sequenceOf(ANY_TEXT, banned)), characters);
}

function assertion(what: string, rest: TextSet, before: Before): TextSet {
  if (what === 'begin') return before === 'start' ? rest : NO_TEXT;
  if (what === 'end') return both(EMPTY_TEXT, rest);
  const needsWord = (before === 'word') !== (what === 'boundary');
  if (needsWord) return both(sequenceOf(A_WORD, ANY_TEXT), rest);
  return both(anyOf(EMPTY_TEXT, sequenceOf(NOT_WORD, ANY_TEXT)), rest);
}

function both(a: TextSet, b: TextSet): TextSet {
  if (a === NO_TEXT || b === NO_TEXT) return NO_TEXT;
  if (a === EMPTY_TEXT || b === EMPTY_TEXT) return hasEmptyText(a) && hasEmptyText(b) ? EMPTY_TEXT : NO_TEXT;
  if (a === ANY_TEXT) return b;
  return b === ANY_TEXT ? a : allOf(a, b);
}

function either(sets: readonly TextSet[]): TextSet {
  const left = sets.filter((set) => set !== NO_TEXT);
  return left.length === 0 ? NO_TEXT : anyOf(...left);
}

function sequence(first: TextSet, rest: TextSet): TextSet {
  if (first === NO_TEXT || rest === NO_TEXT) return NO_TEXT;
  return rest === EMPTY_TEXT ? first : sequenceOf(first, rest);
}

function hasEmptyText(set: TextSet): boolean {
  spend(1);
  switch (set.kind) {
    case 'chars':
      return false;
    case 'text':
      return set.text === '';
    case 'seq':
    case 'and':
      return set.items.every(hasEmptyText);
    case 'alt':
      return set.items.some(hasEmptyText);
    case 'repeat':
      return set.min === 0 || hasEmptyText(set.item);
    case 'not':
      return !hasEmptyText(set.item);
  }
}

function isAssertion(node: RegexNode | undefined, what: 'begin' | 'end'): boolean {
  return node?.kind === 'assertion' && node.what === what;
}

/** True if the node has a look-ahead or an anchor. */
function hasAssertion(node: RegexNode): boolean {
  return some(node, ({ kind }) => kind === 'assertion' || kind === 'ahead');
}

/** True if whether the node matches depends on what stands before it. */
function asksBefore(node: RegexNode): boolean {
  return some(node, (part) => part.kind === 'assertion' && part.what !== 'end');
}

function some(node: RegexNode, holds: (node: RegexNode) => boolean): boolean {
  spend(1);
  if (holds(node)) return true;
  if (node.kind === 'repeat' || node.kind === 'ahead') return some(node.item, holds);
  return (node.kind === 'seq' || node.kind === 'alt') && node.items.some((item) => some(item, holds));
}
