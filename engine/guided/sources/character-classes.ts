import { type CodePoints, complement, normalized } from '../grammar.js';
import { spend } from '../reading-work.js';

const DIGITS: CodePoints = [[0x30, 0x39]];
export const WORD: CodePoints = normalized([
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
export const LINE_ENDS: CodePoints = normalized([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
]);
/** Classes of ECMAScript's escapes, by their letter. */
export const CLASSES: Readonly<Record<string, CodePoints>> = {
  d: DIGITS,
  D: complement(DIGITS),
  w: WORD,
  W: complement(WORD),
  s: SPACE,
  S: complement(SPACE),
};

/**
 * Categories of assigned characters, common scripts, and properties of emojis: the ranges of each are found once, in all
 * planes that have any.
 */
const PROPERTIES =
  /^(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|Letter|Alphabetic|Lowercase|Uppercase|Extended_Pictographic|Emoji(_Component|_Presentation|_Modifier|_Modifier_Base)?|Regional_Indicator|(Script|sc)=(Latin|Greek|Cyrillic|Han|Hiragana|Katakana|Hangul|Arabic|Hebrew|Thai|Devanagari))$/;
const LAST_ASSIGNED = 0x323af;
/** Emojis have modifiers of the last plane. */
const TAGS: readonly [number, number] = [0xe0001, 0xe007f];
/** Steps that a property costs: the first time every character is tested for it. */
const PROPERTY_WORK = 20_000;

const knownProperties = new Map<string, CodePoints>();

/** Code points of a Unicode property; null if there is none of that name. */
export function propertyRanges(name: string): CodePoints | null {
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
  const test = (first: number, end: number): void => {
    for (let codePoint = first; codePoint <= end; codePoint++) {
      if (!matches.test(String.fromCodePoint(codePoint))) continue;
      const last = ranges.at(-1);
      if (last && last[1] === codePoint - 1) last[1] = codePoint;
      else ranges.push([codePoint, codePoint]);
    }
  };
  test(0, 0xd7ff);
  test(0xe000, LAST_ASSIGNED);
  test(...TAGS);
  const found = normalized(ranges);
  knownProperties.set(name, found);
  return found;
}
