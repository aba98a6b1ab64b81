import { join } from 'node:path';
import { answerSummary } from '../asking/answer-summary.js';
import { ask, countTokens } from '../asking/ask.js';
import { type Asker, AskingError } from '../asking/asker.js';
import { settingsOfFlags } from '../asking/sampling-settings.js';
import { type ChatState, isChatCommand, runChatCommand } from '../chat/chat-commands.js';
import { ChatFileError } from '../chat/chat-file.js';
import { ChatHistory, stateDirectory } from '../chat/chat-history.js';
import { ChatInput } from '../chat/chat-input.js';
import { Conversation } from '../chat/conversation.js';
import { UsageError } from '../errors/user-errors.js';
import { AnswerPrinter } from '../terminal/answer-printer.js';
import { plainText } from '../terminal/plain-text.js';
import { readerGone } from '../terminal/standard-output.js';
import { type AskingFlags, askerOf } from './asking-command.js';
import { InterruptedError, listenForInterruption, rejection } from './interruption.js';

export interface ChatFlags extends AskingFlags {
  history?: boolean;
  verbose?: boolean;
}

/** Share of the context to keep free for an answer whose limit is not smaller. */
const ROOM_FOR_ANSWER = 1 / 4;
const EXIT_SOME_FAILED = 1;

/**
 * Runs skein chat: answers lines typed, or read from a pipe, until the input ends.
 * @returns the exit code: 1 where a question of a pipe was not answered. @throws as run.
 */
export async function chat(flags: ChatFlags): Promise<number> {
  const settings = settingsOfFlags(flags);
  const open = askerOf(flags);
  const interruption = listenForInterruption();
  let asker: Asker;
  try {
    asker = await open(interruption.signal);
  } finally {
    interruption.release();
  }
  const session = new ChatSession(asker, flags, {
    model: asker.model,
    conversation: new Conversation(flags.system ?? null),
    settings,
    lastStats: null,
  });
  try {
    return await session.run();
  } finally {
    session.close();
    await asker.close();
  }
}

class ChatSession {
  readonly #asker: Asker;
  readonly #flags: ChatFlags;
  readonly #state: ChatState;
  readonly #input: ChatInput;
  #failed = 0;

  constructor(asker: Asker, flags: ChatFlags, state: ChatState) {
    this.#asker = asker;
    this.#flags = flags;
    this.#state = state;
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
    const keeps = flags.history !== false && isTerminal;
    const path = keeps ? join(stateDirectory(), 'chat-history.jsonl') : null;
    const history = ChatHistory.open(path, (problem) => this.#say(problem));
    this.#input = new ChatInput({
      input: process.stdin,
      output: process.stdout,
      history,
      say: (line) => this.#say(line),
    });
    this.#remember = (message) => history.add(message);
  }

  readonly #remember: (message: string) => void;

  async run(): Promise<number> {
    if (this.#input.isTerminal) {
      this.#say(`${this.#asker.about}`);
      this.#say('/help lists the commands, Ctrl-D leaves');
    }
    for (;;) {
      const message = await this.#next();
      if (message === null || readerGone().aborted) break;
      this.#remember(message);
      if (isChatCommand(message)) {
        const after = this.#command(message);
        if (after === 'leave') break;
        if (after === 'next') continue;
      } else {
        this.#state.conversation.ask(message.replace(/^\/\//, '/'));
      }
      await this.#answer();
    }
    return this.#failed > 0 && !this.#input.isTerminal ? EXIT_SOME_FAILED : 0;
  }

  async #next(): Promise<string | null> {
    const interruption = listenForInterruption();
    try {
      return await Promise.race([this.#input.next(), rejection(interruption.signal)]);
    } finally {
      interruption.release();
    }
  }

  close(): void {
    this.#input.close();
    process.stdin.destroy();
  }

  #command(message: string): 'next' | 'ask' | 'leave' {
    try {
      return runChatCommand(this.#state, message, (line) => this.#say(line));
    } catch (error) {
      if (!(error instanceof UsageError || error instanceof ChatFileError)) throw error;
      this.#failed++;
      this.#say(error.message);
      return 'next';
    }
  }

  /** Answers the last question. A failure is shown, and the question is taken back. */
  async #answer(): Promise<void> {
    const { conversation } = this.#state;
    const interruption = listenForInterruption();
    const signal = AbortSignal.any([interruption.signal, readerGone()]);
    const printer = new AnswerPrinter(process.stdout);
    try {
      await this.#makeRoom(signal);
      const answer = await this.#ask(printer, signal);
      printer.end();
      conversation.answer(answer.text);
      this.#state.lastStats = answerSummary(answer, null);
      if (this.#flags.verbose) this.#say(this.#state.lastStats);
      if (answer.finishReason === 'length')
        this.#say('cut off: the answer, or the context, is as long as it may be');
      this.#leaveWhereEnded(interruption.signal);
    } catch (error) {
      printer.end();
      if (conversation.turns.at(-1)?.role === 'user') conversation.answer('');
      this.#leaveWhereEnded(interruption.signal);
      if (signal.aborted) return;
      if (!(error instanceof AskingError)) throw error;
      this.#failed++;
      this.#say(error.message);
    } finally {
      interruption.release();
    }
  }

  /**
   * Leaves the chat where the signal asks for it: Ctrl-C at a terminal stops the answer alone, any other end of it ends
   * the chat.
   */
  #leaveWhereEnded(signal: AbortSignal): void {
    if (!signal.aborted) return;
    const { reason } = signal;
    if (this.#input.isTerminal && reason instanceof InterruptedError && reason.exitCode === 130) return;
    throw reason;
  }

  /** Asks the last question; where the conversation is too long for the context, without its beginning. */
  async #ask(printer: AnswerPrinter, signal: AbortSignal) {
    const { conversation, settings } = this.#state;
    for (;;) {
      try {
        return await ask(
          this.#asker,
          { messages: conversation.messages },
          {
            settings,
            signal,
            onText: (text, kind) => printer.write(text, kind),
          },
        );
      } catch (error) {
        const isTooLong = error instanceof AskingError && error.apiCode === 'context_length_exceeded';
        if (!isTooLong || !conversation.forgetOldest()) throw error;
        this.#say('the context is full: the oldest question and its answer are forgotten');
      }
    }
  }

  /** Forgets the oldest questions until a good part of the context is free for the answer. */
  async #makeRoom(signal: AbortSignal): Promise<void> {
    const { maxSeqLen } = this.#asker;
    const { conversation, settings } = this.#state;
    if (maxSeqLen === null || conversation.turns.length <= 2) return;
    const most = typeof settings.max_tokens === 'number' ? settings.max_tokens : Number.POSITIVE_INFINITY;
    const room = Math.min(most, Math.floor(maxSeqLen * ROOM_FOR_ANSWER));
    let forgotten = 0;
    for (;;) {
      const used = await countTokens(this.#asker, { messages: conversation.messages }, signal);
      if (used === null || used + room <= maxSeqLen || !conversation.forgetOldest()) break;
      forgotten++;
    }
    if (forgotten > 0)
      this.#say(`the context is full: the oldest of this conversation is forgotten (${forgotten})`);
  }

  /** Shows a line on stderr, beside the conversation. */
  #say(line: string): void {
    const text = `${plainText(line)}\n`;
    const dim = process.stderr.isTTY && process.env.NO_COLOR === undefined;
    process.stderr.write(dim ? `\x1b[2m${text}\x1b[22m` : text);
  }
}
