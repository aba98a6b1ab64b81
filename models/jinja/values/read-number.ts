import { strip } from '../text/strip.js';
import { type Int, toInt } from './numbers.js';

const FLOAT = /^[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/i;
const NOT_FINITE = /^([+-]?)(inf|infinity|nan)$/i;

/** Python's float() of a text; null where it is none. */
export function readFloat(text: string): number | null {
  const body = asciiDigits(strip(text, 'both', null));
  if (FLOAT.test(body)) return Number(body.replaceAll('_', ''));
  const special = NOT_FINITE.exec(body);
  if (special === null) return null;
  const value = special[2]!.toLowerCase() === 'nan' ? Number.NaN : Number.POSITIVE_INFINITY;
  return special[1] === '-' ? -value : value;
}

const PREFIXES: Readonly<Record<string, number>> = { '0x': 16, '0o': 8, '0b': 2 };
const DIGITS = /^[0-9a-z]+(?:_[0-9a-z]+)*$/;
/** Most digits of a text that Python reads as an int. */
const MAX_DIGITS = 4300;

/** Python's int() of a text; null where it is none. @param base 2 to 36, or 0: as the prefix says */
export function readInt(text: string, base: number): Int | null {
  const body = asciiDigits(strip(text, 'both', null)).toLowerCase();
  const sign = /^[+-]/.test(body) ? body[0]! : '';
  let digits = body.slice(sign.length);
  const prefixed = PREFIXES[digits.slice(0, 2)];
  let radix = base;
  if (prefixed !== undefined && (base === 0 || base === prefixed)) {
    radix = prefixed;
    digits = digits.slice(2).replace(/^_/, '');
  } else if (base === 0) {
    radix = 10;
    if (/^0[_0]*[1-9]/.test(digits)) return null;
  }
  if (!DIGITS.test(digits)) return null;
  const plain = digits.replaceAll('_', '');
  if (radix === 10 && plain.length > MAX_DIGITS) return null;
  return ofDigits(plain, radix, sign === '-');
}

function ofDigits(digits: string, radix: number, isNegative: boolean): Int | null {
  let value = 0n;
  const base = BigInt(radix);
  for (const digit of digits) {
    const number = Number.parseInt(digit, 36);
    if (number >= radix) return null;
    value = value * base + BigInt(number);
  }
  return toInt(isNegative ? -value : value);
}

/** Decimal digits of other scripts as those of ASCII. */
function asciiDigits(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, (character) => {
    if (!/\p{Nd}/u.test(character)) return character;
    // Decimal digits come in runs of ten, which begin with the zero.
    let zero = character.codePointAt(0)!;
    const code = zero;
    while (zero > code - 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
    return String((code - zero) % 10);
  });
}
