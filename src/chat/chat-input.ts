import { createInterface, type Interface } from 'node:readline';
import { COMMAND_NAMES } from './chat-commands.js';
import type { ChatHistory } from './chat-history.js';
import { MessageLines } from './message-lines.js';

const PROMPT = '>>> ';
const GOES_ON = '... ';
/** Escape sequences that ask the terminal to mark pasted text, so that its lines are not taken for typed ones. */
const BRACKETED_PASTE = { on: '\x1b[?2004h', off: '\x1b[?2004l' };

export interface ChatInputOptions {
  input: NodeJS.ReadStream;
  output: NodeJS.WriteStream;
  history: ChatHistory;
  /** Shows a line to the user that is no part of the conversation. */
  say: (line: string) => void;
}

interface Line {
  text: string;
  isPasted: boolean;
}

/** Reads the messages of a chat, from a terminal with Node's line editor or from a pipe, line by line. */
export class ChatInput {
  readonly #options: ChatInputOptions;
  readonly #isTerminal: boolean;
  readonly #lines: Line[] = [];
  readonly #message = new MessageLines();
  readonly #editor: Interface;
  #isPasting = false;
  #isEnded = false;
  #warned = false;
  #wake: (() => void) | null = null;
  /** Entries for the arrow keys: the editor's own list, to which it adds each line. */
  #recalled: string[] = [];

  constructor(options: ChatInputOptions) {
    const { input, output, history } = options;
    this.#options = options;
    this.#isTerminal = Boolean(input.isTTY && output.isTTY);
    this.#editor = createInterface({
      input,
      ...(this.#isTerminal
        ? { output, terminal: true, history: [...history.entries], historySize: 1000, tabSize: 4, completer }
        : { terminal: false }),
      crlfDelay: Number.POSITIVE_INFINITY,
    });
    this.#editor.on('line', (line) => {
      // A recalled message may have several lines, which newer editors separate by CR.
      const text = line.replaceAll('\r', '\n');
      this.#lines.push({ text, isPasted: this.#isPasting });
      this.#wake?.();
    });
    this.#editor.on('close', () => {
      this.#isEnded = true;
      if (this.#isTerminal) output.write(BRACKETED_PASTE.off);
      this.#wake?.();
    });
    this.#editor.on('history', (lines: string[]) => {
      this.#recalled = lines;
    });
    this.#editor.on('SIGINT', () => this.#interrupt());
    if (this.#isTerminal) {
      input.on('keypress', (_, key: { name?: string } | undefined) => {
        if (key?.name === 'paste-start') this.#isPasting = true;
        if (key?.name === 'paste-end') this.#isPasting = false;
      });
    }
    this.pause();
  }

  get isTerminal(): boolean {
    return this.#isTerminal;
  }

  /** Resolves with the next message; null at the end of the input. */
  async next(): Promise<string | null> {
    this.#resume();
    try {
      for (;;) {
        if (this.#lines.length === 0) {
          if (this.#isEnded) return this.#message.isOpen ? this.#message.take() : null;
          if (this.#isTerminal && !this.#isPasting) this.#prompt();
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
          this.#wake = null;
          continue;
        }
        const { text, isPasted } = this.#lines.shift()!;
        this.#warned = false;
        const message = this.#message.add(text, { isPasted });
        if (message !== null && message.trim() !== '') return message;
      }
    } finally {
      this.pause();
    }
  }

  /** Stops reading keys, and lets Ctrl-C be a signal again. */
  pause(): void {
    if (this.#isEnded) return;
    this.#editor.pause();
    if (!this.#isTerminal) return;
    this.#options.output.write(BRACKETED_PASTE.off);
    this.#options.input.setRawMode(false);
  }

  close(): void {
    this.pause();
    this.#editor.close();
  }

  #resume(): void {
    if (this.#isEnded) return;
    if (this.#isTerminal) {
      this.#options.input.setRawMode(true);
      this.#options.output.write(BRACKETED_PASTE.on);
    }
    this.#editor.resume();
  }

  #prompt(): void {
    // The list is to hold whole messages.
    this.#recalled.splice(0, this.#recalled.length, ...this.#options.history.entries);
    this.#editor.setPrompt(this.#message.isOpen ? GOES_ON : PROMPT);
    this.#editor.prompt(true);
  }

  /** Handles Ctrl-C at the prompt: it drops a message that was begun; without one the second Ctrl-C leaves. */
  #interrupt(): void {
    const isEmpty = this.#editor.line === '' && !this.#message.isOpen;
    this.#message.clear();
    this.#isPasting = false;
    // Only the editor's own keys can empty its line.
    this.#editor.write(null, { ctrl: true, name: 'e' });
    this.#editor.write(null, { ctrl: true, name: 'u' });
    this.#options.output.write('\n');
    if (isEmpty && this.#warned) {
      this.#editor.close();
      return;
    }
    this.#warned = isEmpty;
    if (isEmpty) this.#options.say('Ctrl-C once more, or Ctrl-D, to leave');
    this.#prompt();
  }
}

/** Tab completes the names of commands. */
function completer(line: string): [string[], string] {
  return [line.startsWith('/') ? COMMAND_NAMES.filter((name) => name.startsWith(line)) : [], line];
}
