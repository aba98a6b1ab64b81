import type { ChatMessage } from '../../models/chat-message.js';
import type { ToolCall } from '../generation/chat-pieces.js';
import { truncated } from '../generation/truncation.js';
import { answerMessage, resultMessage } from '../library/collected-answer.js';

const isUser = ({ role }: ChatMessage) => role === 'user';

/** A conversation: a system message, if any, and questions with their answers. */
export class Conversation {
  system: string | null;
  /** All questions and answers; the last may be a question that waits for its answer. */
  readonly turns: ChatMessage[] = [];
  /** Number of turns at the beginning that the model no longer sees. */
  #unseen = 0;

  constructor(system: string | null = null) {
    this.system = system;
  }

  /** What the model sees. */
  get messages(): ChatMessage[] {
    return this.#behindSystem(this.turns.slice(this.#unseen));
  }

  /** All that was said. */
  get whole(): ChatMessage[] {
    return this.#behindSystem(this.turns);
  }

  ask(question: string): void {
    this.turns.push({ role: 'user', content: question });
  }

  /** Adds the answer to the last question; an empty one takes the question back. */
  answer(text: string): void {
    if (text === '') this.takeBack();
    else this.turns.push(answerMessage(text, '', []));
  }

  /** Adds an answer that calls functions; their results follow. */
  call(text: string, calls: readonly ToolCall[]): void {
    this.turns.push(answerMessage(text, '', calls));
  }

  result(id: string, content: string): void {
    this.turns.push(resultMessage(id, content));
  }

  /** Takes the last question back, with all that was said since. */
  takeBack(): void {
    const last = this.turns.findLastIndex(isUser);
    if (last >= 0) this.#shorten(last);
  }

  /** Takes the last answer back, so that its question waits for another. False where there is none. */
  retry(): boolean {
    const last = this.turns.findLastIndex(isUser);
    if (last < 0 || last === this.turns.length - 1) return false;
    this.#shorten(last + 1);
    return true;
  }

  /**
   * Hides as many of the oldest questions and their answers from the model as are needed; the last question stays.
   * @param fits true where messages fit; called as often as the number of turns has bits
   * @returns number of questions that were hidden
   */
  async makeFit(fits: (messages: readonly ChatMessage[]) => Promise<boolean>): Promise<number> {
    if (this.turns.length - this.#unseen <= 2 || (await fits(this.messages))) return 0;
    const seen = await truncated(this.messages, fits, isUser);
    const from = this.turns.length - seen.filter(({ role }) => role !== 'system').length;
    const hidden = this.turns.slice(this.#unseen, from).filter(isUser).length;
    this.#unseen = from;
    return hidden;
  }

  /** Hides the oldest question and its answer. False where only the last question is left. */
  forgetOldest(): boolean {
    const next = this.turns.findIndex((turn, index) => index > this.#unseen && isUser(turn));
    if (next < 0) return false;
    this.#unseen = next;
    return true;
  }

  reset(): void {
    this.#shorten(0);
  }

  #shorten(length: number): void {
    this.turns.length = length;
    // The last question is always seen.
    this.#unseen = Math.min(this.#unseen, Math.max(0, this.turns.findLastIndex(isUser)));
  }

  #behindSystem(turns: readonly ChatMessage[]): ChatMessage[] {
    return this.system === null ? [...turns] : [{ role: 'system', content: this.system }, ...turns];
  }
}
