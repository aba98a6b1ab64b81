import { valueError } from '../errors.js';
import { SPACES } from '../text/character-classes.js';
import { charactersOf, lengthOf } from '../text/code-points.js';

interface WrapOptions {
  width: number;
  breaksLongWords: boolean;
  breaksOnHyphens: boolean;
}

/** White space that Python's textwrap knows. */
const W = '\\t\\n\\v\\f\\r ';
const WORD_PUNCTUATION = '[\\p{L}\\p{N}_!"\'&.,?]';
const LETTER = '(?:(?!\\p{Nd})[\\p{L}\\p{N}_])';
const HYPHEN = `-(?:(?<=${LETTER}{2}-)|(?<=${LETTER}-${LETTER}-))(?=${LETTER}-?${LETTER})`;
const DASH = `(?<=${WORD_PUNCTUATION})-{2,}(?=[\\p{L}\\p{N}_])`;
/** Words with the places at which they may be broken, and the white space between them: textwrap's wordsep_re. */
const PIECES = new RegExp(`([${W}]+|${DASH}|[^${W}]+?(?:${HYPHEN}|(?=[${W}]|$)|${DASH}|(?=${DASH})))`, 'u');
const SIMPLE_PIECES = new RegExp(`([${W}]+)`);
const ONLY_SPACE = new RegExp(`^[${SPACES}]*$`);

/** Lines of a paragraph, as Python's textwrap.wrap makes them without touching its white space. */
export function wrapped(text: string, options: WrapOptions): string[] {
  if (options.width <= 0) throw valueError(`invalid width ${options.width} (must be > 0)`);
  const pieces = text.split(options.breaksOnHyphens ? PIECES : SIMPLE_PIECES).filter((piece) => piece !== '');
  const lines: string[] = [];
  let at = 0;
  while (at < pieces.length) {
    if (lines.length > 0 && ONLY_SPACE.test(pieces[at]!)) at++;
    const line: string[] = [];
    let length = 0;
    while (at < pieces.length && length + lengthOf(pieces[at]!) <= options.width) {
      length += lengthOf(pieces[at]!);
      line.push(pieces[at++]!);
    }
    if (at < pieces.length && lengthOf(pieces[at]!) > options.width) {
      const { part, rest } = brokenWord(pieces[at]!, options.width - length, line.length === 0, options);
      line.push(part);
      if (rest === '') at++;
      else pieces[at] = rest;
    }
    if (line.length > 0 && ONLY_SPACE.test(line.at(-1)!)) line.pop();
    if (line.length > 0) lines.push(line.join(''));
  }
  return lines;
}

/** A word that is longer than a line: its part for this line, and the rest. */
function brokenWord(
  word: string,
  room: number,
  isLineEmpty: boolean,
  { width, breaksLongWords, breaksOnHyphens }: WrapOptions,
): { part: string; rest: string } {
  if (!breaksLongWords) return isLineEmpty ? { part: word, rest: '' } : { part: '', rest: word };
  const characters = charactersOf(word);
  let end = width < 1 ? 1 : room;
  if (breaksOnHyphens && characters.length > room) {
    const hyphen = characters.slice(0, room).lastIndexOf('-');
    if (hyphen > 0 && characters.slice(0, hyphen).some((one) => one !== '-')) end = hyphen + 1;
  }
  return { part: characters.slice(0, end).join(''), rest: characters.slice(end).join('') };
}
