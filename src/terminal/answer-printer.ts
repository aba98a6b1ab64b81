import { plainText } from './plain-text.js';

const DIM = '\x1b[2m';
const NORMAL = '\x1b[22m';

export interface TextOutput {
  isTTY?: boolean | undefined;
  write(text: string): unknown;
}

/** Writes an answer as it comes. Reasoning is shown, dimmed, on a terminal only. */
export class AnswerPrinter {
  readonly #output: TextOutput;
  #isThinking = false;
  #last = '\n';

  constructor(output: TextOutput) {
    this.#output = output;
  }

  write(text: string, kind: 'answer' | 'reasoning'): void {
    const isThought = kind === 'reasoning';
    if (isThought && !this.#output.isTTY) return;
    let shown = plainText(text);
    if (shown === '') return;
    if (this.#isThinking && !isThought) shown = `${NORMAL}\n\n${shown.replace(/^\n+/, '')}`;
    if (!this.#isThinking && isThought) shown = DIM + shown;
    this.#isThinking = isThought;
    this.#last = shown.at(-1)!;
    this.#output.write(shown);
  }

  /** Ends the last line. */
  end(): void {
    if (this.#isThinking) this.#output.write(NORMAL);
    this.#isThinking = false;
    if (this.#last !== '\n') this.#output.write('\n');
    this.#last = '\n';
  }
}
