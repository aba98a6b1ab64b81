import { setImmediate as nextTurn } from 'node:timers/promises';

/** Characters that are decoded in one turn of the event loop; a multiple of 4. */
const CHARACTERS_IN_TURN = 2 ** 20;
/** Characters of base64 that stand for whole bytes together. */
const GROUP = 4;
/** Replaces characters that are not ASCII: it is not a base64 character either. */
const OTHER = '!'.charCodeAt(0);

/** Bytes that a base64 text decodes to, where it has nothing else in it. */
export function fileLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.floor(((base64.length - padding) * 3) / 4);
}

/**
 * Decodes base64, of lines too. The caller's thread has other turns in between.
 * @returns the bytes, or what is wrong with the text, as the end of a sentence
 */
export async function fileOfBase64(base64: string): Promise<Uint8Array | string> {
  const file = Buffer.allocUnsafe(fileLength(base64));
  let [end, rest] = [0, ''];
  for (let at = 0; at < base64.length; at += CHARACTERS_IN_TURN) {
    if (at > 0) await nextTurn();
    const isLast = at + CHARACTERS_IN_TURN >= base64.length;
    const text = rest + withoutSpaces(base64.slice(at, at + CHARACTERS_IN_TURN));
    const length = isLast ? text.length : lengthOfTurn(text, text.endsWith('='));
    const whole = text.slice(0, length);
    rest = text.slice(length);
    // Characters that are not base64, or come after its end, are left out, so that the bytes are fewer.
    const expected = isLast ? fileLength(whole) : (length / GROUP) * 3;
    const written = file.write(whole, end, 'base64');
    const breaksOff = isLast && /^[\w+/-]*={0,2}$/.test(whole);
    // A character alone in its group encodes no byte.
    const isAlone = isLast && whole.length % GROUP === 1;
    if (written !== expected || isAlone) return breaksOff ? 'breaks off' : 'has other characters';
    end += written;
  }
  return end === 0 ? 'is empty' : file.subarray(0, end);
}

/** Characters of whole groups. The last one, where it is padded, may have nothing but spaces after it, and so is left for a later turn. */
function lengthOfTurn({ length }: string, isPadded: boolean): number {
  const most = isPadded ? length - 1 : length;
  return most - (most % GROUP);
}

/** Not between ! and ~, where all characters of base64 are. */
const UNPRINTED = /[^!-~]/;
const isSpace = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d);

function withoutSpaces(text: string): string {
  if (!UNPRINTED.test(text)) return text;
  const codes = Buffer.allocUnsafe(text.length);
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (!isSpace(code)) codes[end++] = code < 0x80 ? code : OTHER;
  }
  return codes.toString('latin1', 0, end);
}
