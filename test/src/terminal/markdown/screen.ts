import type { Screen } from '../../../../src/terminal/markdown/markdown-printer.js';

/** A terminal's screen with what has left it at its upper end, for the few escape sequences that the printer writes. */
export class TestScreen implements Screen {
  readonly isTTY = true;
  columns: number;
  readonly rows: number;
  /** All that was written. */
  written = '';
  readonly #lines: string[] = [''];
  #row = 0;
  #column = 0;

  constructor(columns = 40, rows = 12) {
    this.columns = columns;
    this.rows = rows;
  }

  /** Lines as a reader sees them, styles left out. */
  get lines(): string[] {
    return this.#lines.map((line) => line.trimEnd());
  }

  write(text: string): void {
    this.written += text;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are read
    for (const [part, rows] of text.matchAll(/\x1b\[(\d*)A|\x1b\[J|\x1b\[\d+m|[\s\S]/gu)) {
      if (part.endsWith('m') && part.length > 1) continue;
      if (rows !== undefined) this.#up(Number(rows));
      else if (part === '\x1b[J') this.#clearBelow();
      else if (part === '\r') this.#column = 0;
      else if (part === '\n') this.#down();
      else this.#put(part);
    }
  }

  #put(character: string): void {
    if (this.#column >= this.columns) this.#down();
    const line = this.#lines[this.#row]!.padEnd(this.#column);
    this.#lines[this.#row] = line.slice(0, this.#column) + character + line.slice(this.#column + 1);
    this.#column++;
  }

  #down(): void {
    this.#row++;
    this.#column = 0;
    if (this.#row === this.#lines.length) this.#lines.push('');
  }

  #up(rows: number): void {
    const top = Math.max(0, this.#lines.length - this.rows);
    if (this.#row - rows < top)
      throw new Error(`The cursor would leave the screen: ${this.#row} - ${rows} < ${top}`);
    this.#row -= rows;
  }

  #clearBelow(): void {
    this.#lines[this.#row] = this.#lines[this.#row]!.slice(0, this.#column);
    this.#lines.length = this.#row + 1;
  }
}
