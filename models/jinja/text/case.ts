import { isLower, isTitle, isUpper } from './character-classes.js';

/** Letters of two parts whose form at the beginning of a word differs from the upper case: ǆ, ǅ and Ǆ give ǅ. */
const TITLES = new Map([
  ...['Ǆǅǆ', 'Ǉǈǉ', 'Ǌǋǌ', 'Ǳǲǳ'].flatMap((three) =>
    Array.from(three, (one): [string, string] => [one, three[1]!]),
  ),
  ...(['ᾲᾺͅ', 'ᾴΆͅ', 'ᾷᾼ͂', 'ῂῊͅ', 'ῄΉͅ', 'ῇῌ͂', 'ῲῺͅ', 'ῴΏͅ', 'ῷῼ͂'] as const).map((one): [string, string] => [
    one[0]!,
    one.slice(1),
  ]),
  ...(['ᾳᾼ', 'ᾼᾼ', 'ῃῌ', 'ῌῌ', 'ῳῼ', 'ῼῼ', 'ŉʼN'] as const).map((one): [string, string] => [
    one[0]!,
    one.slice(1),
  ]),
]);

/** A character as it begins a word. */
function titleCase(character: string): string {
  const known = TITLES.get(character);
  if (known !== undefined) return known;
  const code = character.codePointAt(0)!;
  // Georgian has no upper case at the beginning of a word; Greek with an iota below keeps it there.
  if (code >= 0x10d0 && code <= 0x10ff) return character;
  if (code >= 0x1f80 && code <= 0x1faf) return String.fromCodePoint(code | 8);
  const [first, ...rest] = character.toUpperCase();
  return first! + rest.join('').toLowerCase();
}

/** Python's str.capitalize. */
export function capitalized(text: string): string {
  const [first = ''] = text;
  return first === '' ? '' : titleCase(first) + text.slice(first.length).toLowerCase();
}

const isCased = (character: string) => isLower(character) || isUpper(character) || isTitle(character);

/** Python's str.title: each run of letters begins a word. */
export function titled(text: string): string {
  let result = '';
  let isInWord = false;
  for (const character of text) {
    result += isInWord ? character.toLowerCase() : titleCase(character);
    isInWord = isCased(character);
  }
  return result;
}

/** Python's str.swapcase. */
export function swapped(text: string): string {
  let result = '';
  for (const character of text) {
    result += isUpper(character) ? character.toLowerCase() : character.toUpperCase();
  }
  return result;
}

/** True where all letters with a case are small, and there is one; or all are capital. */
export function isAllOf(text: string, wanted: 'lower' | 'upper'): boolean {
  const [is, isOther] = wanted === 'lower' ? [isLower, isUpper] : [isUpper, isLower];
  let found = false;
  for (const character of text) {
    if (isOther(character) || isTitle(character)) return false;
    found ||= is(character);
  }
  return found;
}

/** True where words begin with a capital, go on in small letters, and there is a word. */
export function isTitled(text: string): boolean {
  let found = false;
  let isInWord = false;
  for (const character of text) {
    if (isUpper(character) || isTitle(character)) {
      if (isInWord) return false;
      isInWord = true;
      found = true;
    } else if (isLower(character)) {
      if (!isInWord) return false;
    } else isInWord = false;
  }
  return found;
}
