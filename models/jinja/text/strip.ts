/** True for white space as Python's str.strip knows it. @param code a UTF-16 unit */
function isSpaceUnit(code: number): boolean {
  if (code <= 0x20) return code >= 0x1c || (code >= 9 && code <= 13);
  if (code < 0x85) return false;
  return (
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

/** Number of units of white space at the beginning. */
export function leadingSpace(text: string): number {
  let start = 0;
  while (start < text.length && isSpaceUnit(text.charCodeAt(start))) start++;
  return start;
}

/** Units up to the white space at the end. */
export function endBeforeSpace(text: string): number {
  let end = text.length;
  while (end > 0 && isSpaceUnit(text.charCodeAt(end - 1))) end--;
  return end;
}

/** Python's strip, lstrip or rstrip. @param characters what is taken away; null: white space */
export function strip(text: string, sides: 'both' | 'left' | 'right', characters: string | null): string {
  if (characters !== null) return stripOf(text, sides, characters);
  const end = sides === 'left' ? text.length : endBeforeSpace(text);
  const start = sides === 'right' ? 0 : leadingSpace(text);
  return start < end ? text.slice(start, end) : '';
}

function stripOf(text: string, sides: 'both' | 'left' | 'right', characters: string): string {
  const set = new Set(characters);
  let start = 0;
  let end = text.length;
  if (sides !== 'right') {
    for (const character of text) {
      if (!set.has(character)) break;
      start += character.length;
    }
  }
  if (sides !== 'left') {
    while (end > start) {
      const character = lastCharacter(text, end);
      if (!set.has(character)) break;
      end -= character.length;
    }
  }
  return text.slice(start, end);
}

/** The character that ends at a unit. */
function lastCharacter(text: string, end: number): string {
  const two = end > 1 ? text.codePointAt(end - 2)! : 0;
  return two > 0xffff ? String.fromCodePoint(two) : text[end - 1]!;
}
