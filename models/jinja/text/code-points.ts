/** Texts by code points, as Python's str counts; JavaScript's strings count UTF-16 units. */

const SURROGATE = /[\ud800-\udfff]/;

/** True where each character of a text is one unit. */
export const isFlat = (text: string) => !SURROGATE.test(text);

/** Python's len(). */
export function lengthOf(text: string): number {
  if (isFlat(text)) return text.length;
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** Characters of a text. */
export function charactersOf(text: string): string[] {
  return isFlat(text) ? text.split('') : Array.from(text);
}

/** The units up to a character: where it begins. @param index from 0 to the number of characters */
export function unitOffset(text: string, index: number): number {
  if (isFlat(text)) return index;
  let units = 0;
  let count = 0;
  for (const character of text) {
    if (count++ === index) return units;
    units += character.length;
  }
  return units;
}

/** Index of the character at a unit, or -1 for -1. */
export function indexOfUnit(text: string, unit: number): number {
  return unit <= 0 ? unit : lengthOf(text.slice(0, unit));
}

/** Order of two texts by their code points: negative, 0 or positive. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  if (isFlat(a) && isFlat(b)) return a < b ? -1 : 1;
  let i = 0;
  while (a.charCodeAt(i) === b.charCodeAt(i)) i++;
  return rank(a, i) - rank(b, i);
}

/** Units of surrogates stand for the characters beyond all others. */
function rank(text: string, unit: number): number {
  if (unit >= text.length) return -1;
  const code = text.charCodeAt(unit);
  return code >= 0xd800 && code <= 0xdfff ? code + 0x10000 : code;
}
