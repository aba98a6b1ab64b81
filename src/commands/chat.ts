import { join } from 'node:path';
import { SkeinError } from '../../base/skein-error.js';
import { answerSummary } from '../asking/answer-summary.js';
import { type Asker, AskingError } from '../asking/asker.js';
import { type AnswerOutput, answerTurn } from '../chat/answer-turn.js';
import { isChatCommand, runChatCommand } from '../chat/chat-commands.js';
import { ChatHistory, stateDirectory } from '../chat/chat-history.js';
import { ChatInput } from '../chat/chat-input.js';
import type { AfterCommand, ChatState } from '../chat/chat-state.js';
import { type ChatTools, openChatTools } from '../chat/chat-tools.js';
import { type KeptChats, keptLines } from '../chat/kept-chats.js';
import { goOn } from '../chat/kept-commands.js';
import { AnswerPrinter } from '../terminal/answer-printer.js';
import { MarkdownPrinter } from '../terminal/markdown/markdown-printer.js';
import { plainText } from '../terminal/plain-text.js';
import { readerGone } from '../terminal/standard-output.js';
import {
  type ChatFlags,
  keptChats,
  modelsBeside,
  type OpenedChat,
  openedChat,
  otherModel,
} from './chat-opening.js';
import { InterruptedError, listenForInterruption, rejection } from './interruption.js';

const EXIT_SOME_FAILED = 1;

/**
 * Runs skein chat: answers lines typed, or read from a pipe, until the input ends.
 * @returns the exit code: 1 where a question of a pipe was not answered. @throws as run, and ChatFileError.
 */
export async function chat(flags: ChatFlags): Promise<number> {
  const kept = keptChats(say);
  if (flags.list) {
    const lines = keptLines(kept.list());
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
    if (lines.length === 0) say('no chats are kept yet');
    return 0;
  }
  const opened = openedChat(flags, kept);
  const tools = await openChatTools(flags.tools ?? []);
  const interruption = listenForInterruption();
  let asker: Asker;
  try {
    asker = await opened.open(interruption.signal);
  } finally {
    interruption.release();
  }
  const session = new ChatSession(asker, flags, { opened, tools, kept });
  try {
    return await session.run();
  } finally {
    await session.close();
  }
}

/** Shows a line on stderr, apart from the conversation. */
function say(line: string): void {
  const text = `${plainText(line)}\n`;
  const dim = process.stderr.isTTY && process.env.NO_COLOR === undefined;
  process.stderr.write(dim ? `\x1b[2m${text}\x1b[22m` : text);
}

class ChatSession {
  #asker: Asker;
  readonly #flags: ChatFlags;
  readonly #state: ChatState;
  readonly #input: ChatInput;
  readonly #remember: (message: string) => void;
  #resumed: OpenedChat['chat'] | null;
  #failed = 0;

  constructor(
    asker: Asker,
    flags: ChatFlags,
    { opened, tools, kept }: { opened: OpenedChat; tools: ChatTools; kept: KeptChats },
  ) {
    this.#asker = asker;
    this.#flags = flags;
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY;
    const keeps = flags.history !== false;
    const path = keeps && isTerminal ? join(stateDirectory(), 'chat-history.jsonl') : null;
    const history = ChatHistory.open(path, say);
    this.#input = new ChatInput({ input: process.stdin, output: process.stdout, history, say });
    this.#remember = (message) => history.add(message);
    this.#resumed = opened.isResumed ? opened.chat : null;
    this.#state = {
      ...opened.chat,
      model: asker.model,
      tools,
      kept: keeps && (isTerminal || opened.isResumed) ? kept : null,
      lastStats: null,
      models: async () => modelsBeside(this.#asker, this.#state.asked),
      useModel: (name) => this.#useModel(name),
    };
  }

  async run(): Promise<number> {
    if (this.#input.isTerminal) {
      say(`${this.#asker.about}`);
      say('/help lists the commands, Ctrl-D leaves');
    }
    if (this.#resumed !== null) goOn(this.#state, this.#resumed, 'the chat that is kept', say);
    for (;;) {
      const message = await this.#next();
      if (message === null || readerGone().aborted) break;
      this.#remember(message);
      if (isChatCommand(message)) {
        const after = await this.#command(message);
        if (after === 'leave') break;
        if (after === 'next') continue;
      } else {
        this.#state.conversation.ask(message.replace(/^\/\//, '/'));
      }
      await this.#answer();
    }
    const id = this.#state.kept?.id ?? null;
    if (id !== null && this.#input.isTerminal) say(`kept: skein chat --resume ${id}`);
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

  async close(): Promise<void> {
    this.#input.close();
    process.stdin.destroy();
    await this.#asker.close();
  }

  async #command(message: string): Promise<AfterCommand> {
    try {
      return await runChatCommand(this.#state, message, say);
    } catch (error) {
      if (!(error instanceof SkeinError) || error instanceof InterruptedError) throw error;
      this.#failed++;
      say(error.message);
      return 'next';
    }
  }

  /** Opens the other model before this one is closed: where that fails, the chat has what it had. */
  async #useModel(name: string): Promise<void> {
    const { asked, open } = otherModel(name, this.#asker, this.#flags, this.#state.asked);
    const interruption = listenForInterruption();
    let asker: Asker;
    try {
      asker = await open(interruption.signal);
    } catch (error) {
      this.#leaveWhereEnded(interruption.signal);
      if (interruption.signal.aborted) return;
      throw error;
    } finally {
      interruption.release();
    }
    const before = this.#asker;
    this.#asker = asker;
    Object.assign(this.#state, { model: asker.model, asked });
    say(asker.about);
    await before.close();
  }

  /** Answers the last question. A failure is shown, and the question is taken back. */
  async #answer(): Promise<void> {
    const interruption = listenForInterruption();
    const signal = AbortSignal.any([interruption.signal, readerGone()]);
    try {
      const asked = { asker: this.#asker, output: this.#printer(), signal, say };
      const answer = await answerTurn(this.#state, asked);
      this.#state.lastStats = answerSummary(answer, null);
      if (this.#flags.verbose) say(this.#state.lastStats);
      if (answer.finishReason === 'length')
        say('cut off: the answer, or the context, is as long as it may be');
      if (this.#state.conversation.turns.length > 0) this.#state.kept?.keep(this.#state);
      this.#leaveWhereEnded(interruption.signal);
    } catch (error) {
      this.#leaveWhereEnded(interruption.signal);
      if (signal.aborted) return;
      if (!(error instanceof AskingError)) throw error;
      this.#failed++;
      say(error.message);
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

  #printer(): AnswerOutput {
    const { isTTY } = process.stdout;
    const isPlain =
      this.#flags.markdown === false || process.env.NO_COLOR !== undefined || process.env.TERM === 'dumb';
    return isTTY && !isPlain ? new MarkdownPrinter(process.stdout) : new AnswerPrinter(process.stdout);
  }
}
