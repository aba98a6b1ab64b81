import { graphemesOf, textWidth } from './text-width.js';

/** How a text stands out, by the codes that begin and end it on a terminal. */
const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  underline: [4, 24],
  strike: [9, 29],
  code: [36, 39],
} as const;

export type Style = keyof typeof STYLES;

/** A text in one style, or in several. */
export interface Span {
  text: string;
  styles: readonly Style[];
}

/** A line of spans, without line feeds. */
export type Line = readonly Span[];

export const plain = (text: string): Span => ({ text, styles: [] });
export const styled = (text: string, ...styles: Style[]): Span => ({ text, styles });

/** Adds a style to spans. */
export const withStyle = (spans: readonly Span[], ...styles: Style[]): Span[] =>
  spans.map((span) => ({ text: span.text, styles: [...span.styles, ...styles] }));

export const lineWidth = (line: Line): number => line.reduce((sum, { text }) => sum + textWidth(text), 0);

/** A line as a terminal takes it. Each style ends with its span, so that a line can be cut off from the next. */
export function terminalLine(line: Line): string {
  return line
    .map(({ text, styles }) => {
      if (styles.length === 0 || text === '') return text;
      const codes = (at: 0 | 1) => styles.map((style) => `\x1b[${STYLES[style][at]}m`).join('');
      return codes(0) + text + codes(1);
    })
    .join('');
}

/** Spans in lines of at most `width` columns, cut between words. A longer word is cut where the line ends. */
export function wrappedSpans(spans: readonly Span[], width: number): Line[] {
  const filler = new LineFiller(Math.max(1, width));
  for (const { text, styles } of spans) {
    for (const [part] of text.matchAll(/\n|[ \t]+|[^ \t\n]+/g)) filler.add(part, styles);
  }
  return filler.end();
}

class LineFiller {
  readonly #width: number;
  readonly #lines: Span[][] = [[]];
  #column = 0;
  /** A word, which spans of several styles may be, and the blank in front of it. */
  #word: Span[] = [];
  #gap: Span | null = null;

  constructor(width: number) {
    this.#width = width;
  }

  add(text: string, styles: readonly Style[]): void {
    if (text === '\n') {
      this.#endWord();
      this.#newLine();
    } else if (/^[ \t]/.test(text)) {
      this.#endWord();
      this.#gap = { text: ' ', styles };
    } else this.#word.push({ text, styles });
  }

  end(): Line[] {
    this.#endWord();
    return this.#lines;
  }

  #endWord(): void {
    if (this.#word.length === 0) return;
    const width = lineWidth(this.#word);
    const gap = this.#column === 0 ? 0 : Number(this.#gap !== null);
    if (this.#column > 0 && this.#column + gap + width > this.#width) this.#newLine();
    else if (gap > 0) this.#put(this.#gap!, 1);
    for (const span of this.#word) this.#fill(span);
    this.#word = [];
    this.#gap = null;
  }

  /** Puts a part of a word, in several lines where it is longer than one. */
  #fill({ text, styles }: Span): void {
    const width = textWidth(text);
    if (this.#column + width <= this.#width) {
      this.#put({ text, styles }, width);
      return;
    }
    for (const one of graphemesOf(text)) {
      const columns = textWidth(one);
      if (this.#column + columns > this.#width) this.#newLine();
      this.#put({ text: one, styles }, columns);
    }
  }

  #put(span: Span, width: number): void {
    const line = this.#lines.at(-1)!;
    const last = line.at(-1);
    if (last?.styles === span.styles) last.text += span.text;
    else line.push({ ...span });
    this.#column += width;
  }

  #newLine(): void {
    this.#lines.push([]);
    this.#column = 0;
    this.#gap = null;
  }
}
