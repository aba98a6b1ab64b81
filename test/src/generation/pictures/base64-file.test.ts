import { describe, expect, it } from 'vitest';
import { fileLength, fileOfBase64 } from '../../../../src/generation/pictures/base64-file.js';

/** Characters of one turn; see base64-file.ts. */
const TURN = 2 ** 20;

const bytesOf = (length: number) =>
  Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) & 255));
const lined = (text: string, width: number, end: string) =>
  text.replaceAll(new RegExp(`.{${width}}`, 'g'), (line) => `${line}${end}`);

describe('a file in base64', () => {
  it.each([1, 2, 3, 4, 5, (TURN / 4) * 3 - 1, (TURN / 4) * 3, (TURN / 4) * 3 + 1, 1_600_001])(
    'of %i bytes is decoded, padded or not, of either alphabet',
    async (length) => {
      const file = bytesOf(length);
      const text = file.toString('base64');
      expect(fileLength(text)).toBe(length);
      for (const form of [text, text.replaceAll('=', ''), file.toString('base64url')]) {
        const decoded = await fileOfBase64(form);
        expect(Buffer.compare(decoded as Uint8Array, file)).toBe(0);
      }
    },
  );

  it('may have spaces anywhere, also after its end', async () => {
    const file = bytesOf(900_001);
    const text = file.toString('base64');
    const forms = [lined(text, 76, '\n'), lined(text, 61, '\r\n'), ` \t${lined(text, 3, '\v\f ')}`];
    for (const form of [...forms, `${text}${' '.repeat(2 * TURN)}`, `${' '.repeat(TURN + 1)}${text}`])
      expect(Buffer.compare((await fileOfBase64(form)) as Uint8Array, file)).toBe(0);
  });

  it('lets others have their turns', async () => {
    const text = bytesOf(3 * TURN).toString('base64');
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await fileOfBase64(text);
    isDone = true;
    expect(turns).toBeGreaterThan(2);
  });

  const LONG = 'A'.repeat(TURN + 8);
  it.each([
    ['nothing', '', 'is empty'],
    ['spaces', ' \n ', 'is empty'],
    ['many spaces', ' '.repeat(TURN + 4), 'is empty'],
    ['one character', 'A', 'breaks off'],
    ['a character too many', 'AAAAA', 'breaks off'],
    ['a character too many in a later turn', `${LONG}A`, 'breaks off'],
    ['another character', 'AA*A', 'has other characters'],
    ['another character, and as many bytes', 'AAA*A', 'has other characters'],
    ['an end in the middle', 'AA=A', 'has other characters'],
    ['an end before more', 'AAA=AAAA', 'has other characters'],
    ['an end of three', 'A===', 'has other characters'],
    ['a character whose lower byte is a letter', 'AAA\u0141', 'has other characters'],
    ['a space of another alphabet', 'AAA\u00a0A', 'has other characters'],
    ['both kinds of spaces', 'AAA\u00a0 A', 'has other characters'],
    ['another character in the first turn', `*${LONG}`, 'has other characters'],
    ['another character in a later turn', `${LONG}*AAA`, 'has other characters'],
    ['an end before a later turn', `AAA=${LONG}`, 'has other characters'],
  ])('with %s is refused', async (_, text, why) => {
    expect(await fileOfBase64(text)).toBe(why);
  });
});
