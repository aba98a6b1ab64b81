const SIMPLE: Readonly<Record<string, string>> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};
const HEX_DIGITS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const MAX_CODE = 0x10ffff;

/** Text of a string literal's inside, with Python's escapes; null where one is cut short, or names a character. */
export function unescaped(body: string): string | null {
  if (!body.includes('\\')) return body;
  let result = '';
  let at = 0;
  while (at < body.length) {
    const backslash = body.indexOf('\\', at);
    if (backslash < 0) break;
    result += body.slice(at, backslash);
    const found = readEscape(body, backslash + 1);
    if (found === null) return null;
    result += found.text;
    at = backslash + 1 + found.length;
  }
  return result + body.slice(at);
}

function readEscape(body: string, at: number): { text: string; length: number } | null {
  const letter = String.fromCodePoint(body.codePointAt(at) ?? 0);
  const simple = SIMPLE[letter];
  if (simple !== undefined) return { text: simple, length: 1 };
  const octal = /^[0-7]{1,3}/.exec(body.slice(at, at + 3));
  if (octal !== null) {
    return { text: String.fromCodePoint(Number.parseInt(octal[0], 8)), length: octal[0].length };
  }
  const count = HEX_DIGITS[letter];
  if (count !== undefined) return readHex(body, at + 1, count);
  if (letter === 'N') return null;
  return { text: `\\${unknown(letter)}`, length: letter.length };
}

/** Jinja2 writes characters beyond ASCII as escapes first, whose backslash one before it then takes. */
function unknown(letter: string): string {
  const code = letter.codePointAt(0)!;
  if (code < 0x80) return letter;
  const digits = code.toString(16);
  if (code < 0x100) return `x${digits}`;
  return code < 0x10000 ? `u${digits.padStart(4, '0')}` : `U${digits.padStart(8, '0')}`;
}

function readHex(body: string, at: number, count: number): { text: string; length: number } | null {
  const digits = body.slice(at, at + count);
  if (digits.length < count || !/^[\da-f]+$/i.test(digits)) return null;
  const code = Number.parseInt(digits, 16);
  return code > MAX_CODE ? null : { text: String.fromCodePoint(code), length: count + 1 };
}
