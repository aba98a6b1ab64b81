const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Scripts and signs whose characters take two columns, as Unicode's East Asian Width has them, and pictures. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;
/** Marks and signs that join others, and take no column of their own. */
const NO_WIDTH = /^[\p{M}\p{Cf}]+$/u;

/** The characters of a text as a reader counts them. */
export function graphemesOf(text: string): string[] {
  return Array.from(GRAPHEMES.segment(text), ({ segment }) => segment);
}

/** Number of columns that a terminal shows a text of one line in. */
export function textWidth(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is the range of ASCII
  if (/^[\x00-\x7f]*$/.test(text)) return text.length;
  return graphemesOf(text).reduce((sum, one) => sum + graphemeWidth(one), 0);
}

function graphemeWidth(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}
