import type { AskedMessage } from '../asking/ask.js';

/** A conversation: a system message, if any, and questions with their answers. */
export class Conversation {
  system: string | null;
  /** Questions and answers in turns; the last may be a question that waits for its answer. */
  readonly turns: AskedMessage[] = [];

  constructor(system: string | null = null) {
    this.system = system;
  }

  get messages(): AskedMessage[] {
    return this.system === null ? [...this.turns] : [{ role: 'system', content: this.system }, ...this.turns];
  }

  ask(question: string): void {
    this.turns.push({ role: 'user', content: question });
  }

  /** Adds the answer to the last question; an empty one takes the question back. */
  answer(text: string): void {
    if (text === '') this.turns.pop();
    else this.turns.push({ role: 'assistant', content: text });
  }

  /** Takes the last answer back, so that its question waits for another. False where there is none. */
  retry(): boolean {
    if (this.turns.at(-1)?.role !== 'assistant') return false;
    this.turns.pop();
    return true;
  }

  /** Forgets the oldest question and its answer. False where only the last question is left. */
  forgetOldest(): boolean {
    if (this.turns.length <= 2) return false;
    const next = this.turns.findIndex(({ role }, index) => index > 0 && role === 'user');
    if (next < 0) return false;
    this.turns.splice(0, next);
    return true;
  }

  reset(): void {
    this.turns.length = 0;
  }
}
