import { emitKeypressEvents } from 'node:readline';
import type { FrameLine } from './frame.js';

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const STYLES = { bold: '\x1b[1m', dim: '\x1b[2m', inverse: '\x1b[7m' };

export interface Key {
  name?: string;
  ctrl?: boolean;
}

/**
 * The alternate screen of a terminal, drawn on in place. However the process ends, except by SIGKILL, the terminal is
 * restored, and an error message is seen.
 */
export class Screen {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  readonly #plain = process.env.NO_COLOR !== undefined;
  #isOpen = false;

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream) {
    this.#input = input;
    this.#output = output;
  }

  open(onKey: (key: Key) => void, onResize: () => void): void {
    this.#isOpen = true;
    process.on('exit', this.close);
    // The screen is left before the error is written, which would otherwise be lost with it.
    process.on('uncaughtExceptionMonitor', this.close);
    this.#output.write(ENTER);
    this.#output.on('resize', onResize);
    if (!this.#input.isTTY) return;
    emitKeypressEvents(this.#input);
    this.#input.setRawMode(true);
    this.#input.on('keypress', (_, key: Key | undefined) => onKey(key ?? {}));
    this.#input.resume();
  }

  get size(): { columns: number; rows: number } {
    return { columns: this.#output.columns || 80, rows: this.#output.rows || 24 };
  }

  draw(lines: readonly FrameLine[]): void {
    if (!this.#isOpen) return;
    const text = lines.map(({ text, style }) => {
      const styled = style === undefined || this.#plain ? text : `${STYLES[style]}${text}\x1b[0m`;
      return `${styled}\x1b[K`;
    });
    this.#output.write(`\x1b[H${text.join('\r\n')}\x1b[J`);
  }

  /** Closes the screen. Further calls, as at the end of the process, do nothing. */
  readonly close = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off('exit', this.close);
    process.off('uncaughtExceptionMonitor', this.close);
    if (this.#input.isTTY) this.#input.setRawMode(false);
    this.#output.write(LEAVE);
  };
}
