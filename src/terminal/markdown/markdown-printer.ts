import { blocksOf } from '../../texts/markdown-blocks.js';
import { AnswerPrinter, type TextOutput } from '../answer-printer.js';
import { plainText } from '../plain-text.js';
import { blockLines, openFence } from './block-lines.js';
import { type Line, lineWidth, terminalLine } from './styled-text.js';

/** A terminal, with its size. */
export interface Screen extends TextOutput {
  columns?: number;
  rows?: number;
}

/** Longest block, in UTF-16 units, that further text can still change: each piece of an answer reads it again. */
const MAX_OPEN_LENGTH = 16_384;
/** At most one part in SHARE_OF_TIME of the time goes into reading the text again. */
const SHARE_OF_TIME = 10;
const WIDTH = 80;
const HEIGHT = 24;
/** Widest text: longer lines are hard to read. */
const MAX_WIDTH = 120;

/**
 * Writes an answer in Markdown as it comes. Only its last block can still change its meaning, such as when `**` is closed: what is shown
 * of that block is written over from where it differs.
 *
 *   # Title          written, and not read again
 *   A paragraph.     written, and not read again
 *   - item one       read again with each piece; the terminal's lines are written over
 *   - it             from the first one that differs
 */
export class MarkdownPrinter {
  readonly #screen: Screen;
  readonly #thoughts: AnswerPrinter;
  #isThinking = false;
  /** Text of the last block. */
  #open = '';
  /** What of that block the screen shows, and the columns that it had then. */
  #shown: Line[] = [];
  #columns = 0;
  #hasBlocks = false;
  #notBefore = 0;
  /** Shows what came before that time. */
  #later: NodeJS.Timeout | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#thoughts = new AnswerPrinter(screen);
  }

  write(text: string, kind: 'answer' | 'reasoning'): void {
    if (kind === 'reasoning') {
      this.#isThinking = true;
      this.#thoughts.write(text, kind);
      return;
    }
    if (this.#isThinking) {
      this.#isThinking = false;
      this.#thoughts.end();
      this.#screen.write('\n');
    }
    this.#open += plainText(text);
    const wait = this.#notBefore - performance.now();
    if (wait <= 0) this.#showInTime();
    else this.#later ??= setTimeout(() => this.#showInTime(), wait);
  }

  /** Ends the last line. The next answer is one of its own. */
  end(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    this.#thoughts.end();
    this.#show();
    if (this.#shown.length > 0) this.#screen.write('\n');
    this.#open = '';
    this.#shown = [];
    this.#hasBlocks = false;
    this.#isThinking = false;
    this.#notBefore = 0;
  }

  #showInTime(): void {
    this.#later = undefined;
    const start = performance.now();
    this.#show();
    if (this.#open.length > MAX_OPEN_LENGTH) this.#cut();
    const now = performance.now();
    this.#notBefore = now + SHARE_OF_TIME * (now - start);
  }

  /** Shows all text so far. Blocks in front of the last one are then forgotten. */
  #show(): void {
    const blocks = blocksOf(this.#open);
    const last = blocks.findLastIndex(({ type }) => type !== 'space');
    if (last > 0) {
      const whole = blocks.slice(0, last);
      this.#paint(blockLines(whole, this.#width));
      this.#open = this.#open.slice(whole.reduce((sum, { raw }) => sum + raw.length, 0));
      this.#settle();
    }
    this.#paint(blockLines(blocks.slice(Math.max(0, last)), this.#width));
  }

  /** Leaves the last block as it is shown. What follows is a block of its own, of code where that one was. */
  #cut(): void {
    const last = blocksOf(this.#open).at(-1);
    this.#open = (last === undefined ? null : openFence(last)) ?? '';
    this.#settle();
  }

  #settle(): void {
    this.#hasBlocks ||= this.#shown.length > 0;
    if (this.#shown.length > 0) this.#screen.write('\n');
    this.#shown = [];
  }

  /** Makes the screen show these lines of the last block. */
  #paint(lines: Line[]): void {
    if (lines.length === 0) return;
    if (this.#columns !== this.#screen.columns) {
      // The terminal has laid its lines out in its own way: the block is written once more.
      if (this.#shown.length > 0) this.#settle();
      this.#columns = this.#screen.columns ?? 0;
    }
    if (this.#shown.length === 0 && this.#hasBlocks) this.#screen.write('\n');
    this.#screen.write(this.#change(lines));
    this.#shown = lines;
  }

  /** What turns the lines that are shown into these. What has left the screen at its upper end stays as it is. */
  #change(lines: readonly Line[]): string {
    const before = this.#shown.map(terminalLine);
    const after = lines.map(terminalLine);
    if (before.length === 0) return after.join('\n');
    let first = before.findIndex((line, at) => line !== after[at]);
    if (first < 0)
      return after
        .slice(before.length)
        .map((line) => `\n${line}`)
        .join('');
    first = Math.min(first, after.length - 1);
    const last = before.length - 1;
    if (first === last && after[first]?.startsWith(before[first]!))
      return [after[first]!.slice(before[first]!.length), ...after.slice(first + 1)].join('\n');
    const most = (this.#screen.rows ?? HEIGHT) - 1;
    const rowsFrom = (at: number) =>
      this.#shown.slice(at).reduce((sum, line) => sum + this.#rowsOf(line), -1);
    while (first < last && rowsFrom(first) > most) first++;
    const up = Math.min(most, rowsFrom(first));
    return `${up > 0 ? `\x1b[${up}A` : ''}\r\x1b[J${after.slice(first).join('\n')}`;
  }

  /** Rows of the terminal that a line takes; lines of code may be longer than one. */
  #rowsOf(line: Line): number {
    const tabs = line.reduce((sum, { text }) => sum + text.split('\t').length - 1, 0);
    return Math.max(1, Math.ceil((lineWidth(line) + 7 * tabs) / (this.#screen.columns ?? WIDTH)));
  }

  get #width(): number {
    return Math.min(MAX_WIDTH, (this.#screen.columns ?? WIDTH) - 1);
  }
}
